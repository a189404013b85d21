package belvedere.hbase.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.Filter.ReturnCode;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Rows are given to the filter as a region server gives them. */
final class PrefixFilterTest {
  private static Cell cell(String row, int flag) {
    byte[] family = Bytes.toBytes("s");
    return new KeyValue(Bytes.toBytes(row), family, new byte[] {'_'}, 5, new byte[] {(byte) flag});
  }

  /** The rows that pass; those that a jump leaves out are not shown to the filter. */
  private static List<String> pass(PrefixFilter filter, String[] rows, String deleted)
      throws Exception {
    PrefixFilter sent = PrefixFilter.parseFrom(filter.toByteArray());
    List<String> passed = new ArrayList<>();
    byte[] hint = new byte[0];
    for (String row : rows) {
      if (sent.filterAllRemaining() || Bytes.compareTo(Bytes.toBytes(row), hint) < 0) {
        continue;
      }
      Cell cell = cell(row, row.equals(deleted) ? 0 : 1);
      if (sent.filterRowKey(cell)) {
        continue;
      }
      if (sent.filterCell(cell) == ReturnCode.SEEK_NEXT_USING_HINT) {
        hint = CellUtil.cloneRow(sent.getNextCellHint(cell));
        assertTrue(Bytes.compareTo(hint, CellUtil.cloneRow(cell)) > 0, "a jump goes forward");
        continue;
      }
      List<Cell> cells = new ArrayList<>(List.of(cell));
      sent.filterRowCells(cells);
      if (!cells.isEmpty()) {
        passed.add(row);
      }
    }
    return passed;
  }

  private static byte[][] prefixes(String... names) {
    byte[][] prefixes = new byte[names.length][];
    for (int i = 0; i < names.length; i++) {
      prefixes[i] = Bytes.toBytes(names[i]);
    }
    return prefixes;
  }

  @Test
  void eachPrefixHasItsFirstRecords() throws Exception {
    String[] rows = {"a1", "a2", "a3", "b1", "c1", "c2", "c3", "d1"};
    PrefixFilter two = new PrefixFilter(prefixes("a", "bb", "c"), 0, 2);
    assertEquals(List.of("a1", "a2", "c1", "c2"), pass(two, rows, ""));
    PrefixFilter all = new PrefixFilter(prefixes("a", "bb", "c"), 0, Integer.MAX_VALUE);
    assertEquals(List.of("a1", "a2", "a3", "c1", "c2", "c3"), pass(all, rows, ""));
  }

  @Test
  void deletedRecordsAreNotCounted() throws Exception {
    String[] rows = {"a1", "a2", "a3", "c1"};
    PrefixFilter two = new PrefixFilter(prefixes("a", "c"), 0, 2);
    assertEquals(List.of("a2", "a3", "c1"), pass(two, rows, "a1"));
  }

  @Test
  void recordsGivenBeforeCount() throws Exception {
    String[] rows = {"a2", "a3", "c1", "c2"};
    PrefixFilter two = new PrefixFilter(prefixes("a", "c"), 1, 2);
    assertEquals(List.of("a2", "c1", "c2"), pass(two, rows, ""));
  }

  @Test
  void whatIsNoFilterIsRefused() {
    assertThrows(DeserializationException.class, () -> PrefixFilter.parseFrom(new byte[] {1, 2}));
  }

  @Test
  void aPrefixEndsWithItselfAndTheLastByte() {
    byte[] prefix = {5, 6};
    assertFalse(PrefixFilter.isBeyond(new byte[] {5, 6}, 0, 2, prefix));
    assertFalse(PrefixFilter.isBeyond(new byte[] {5, 6, -2, -1}, 0, 4, prefix));
    assertFalse(PrefixFilter.isBeyond(new byte[] {5}, 0, 1, prefix));
    assertTrue(PrefixFilter.isBeyond(new byte[] {5, 6, -1}, 0, 3, prefix));
    assertTrue(PrefixFilter.isBeyond(new byte[] {5, 7}, 0, 2, prefix));
  }
}

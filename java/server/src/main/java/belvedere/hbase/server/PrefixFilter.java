package belvedere.hbase.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.FilterBase;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The first records of each of many prefixes, in one scan: after enough of one it jumps to the next.
 *
 * <p>A prefix covers the rows from itself to itself with FF behind it. Prefixes are sorted and cover
 * no row twice. Deleted records are neither given nor counted: a record is one whose stamp begins
 * with 1.
 */
public final class PrefixFilter extends FilterBase {
  private static final byte[] STAMP = {'_'};
  private static final byte RECORD = 1;

  private final byte[][] prefixes;
  private final int limit;
  private int at;
  private int counted;
  private boolean isInside;

  /** So many of the first prefix were given before. */
  public PrefixFilter(byte[][] prefixes, int counted, int limit) {
    this.prefixes = prefixes;
    this.counted = counted;
    this.limit = limit;
  }

  /** Whether a row comes after all those that a prefix covers. */
  public static boolean isBeyond(byte[] source, int start, int length, byte[] prefix) {
    int common = Math.min(length, prefix.length);
    int compared = Bytes.compareTo(source, start, common, prefix, 0, common);
    if (compared != 0 || length <= prefix.length) {
      return compared > 0;
    }
    return source[start + prefix.length] == -1;
  }

  @Override
  public boolean filterRowKey(Cell first) {
    byte[] row = first.getRowArray();
    int start = first.getRowOffset();
    int length = first.getRowLength();
    while (at < prefixes.length
        && (counted >= limit || isBeyond(row, start, length, prefixes[at]))) {
      at++;
      counted = 0;
    }
    isInside =
        at < prefixes.length
            && Bytes.compareTo(row, start, length, prefixes[at], 0, prefixes[at].length) >= 0;
    return filterAllRemaining();
  }

  @Override
  public boolean filterAllRemaining() {
    return at >= prefixes.length || at == prefixes.length - 1 && counted >= limit;
  }

  @Override
  public ReturnCode filterCell(Cell cell) {
    return isInside ? ReturnCode.INCLUDE : ReturnCode.SEEK_NEXT_USING_HINT;
  }

  @Override
  public Cell getNextCellHint(Cell cell) {
    byte[] next = prefixes[at];
    return PrivateCellUtil.createFirstOnRow(next, 0, (short) next.length);
  }

  @Override
  public boolean hasFilterRow() {
    return true;
  }

  @Override
  public void filterRowCells(List<Cell> cells) {
    if (isInside && cells.stream().anyMatch(PrefixFilter::isStampOfRecord)) {
      counted++;
    } else {
      cells.clear();
    }
  }

  private static boolean isStampOfRecord(Cell cell) {
    return CellUtil.matchingQualifier(cell, STAMP)
        && cell.getValueLength() > 0
        && cell.getValueArray()[cell.getValueOffset()] == RECORD;
  }

  /** Counted, limit, number of prefixes; then each with its length. */
  @Override
  public byte[] toByteArray() throws IOException {
    int size = 12;
    for (byte[] prefix : prefixes) {
      size += 4 + prefix.length;
    }
    ByteBuffer buffer = ByteBuffer.allocate(size);
    buffer.putInt(counted).putInt(limit).putInt(prefixes.length);
    for (byte[] prefix : prefixes) {
      buffer.putInt(prefix.length).put(prefix);
    }
    return buffer.array();
  }

  /** Called by HBase, by this name. */
  public static PrefixFilter parseFrom(byte[] bytes) throws DeserializationException {
    try {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      int counted = buffer.getInt();
      int limit = buffer.getInt();
      byte[][] prefixes = new byte[buffer.getInt()][];
      for (int i = 0; i < prefixes.length; i++) {
        prefixes[i] = new byte[buffer.getInt()];
        buffer.get(prefixes[i]);
      }
      return new PrefixFilter(prefixes, counted, limit);
    } catch (RuntimeException error) {
      throw new DeserializationException(error);
    }
  }
}

package belvedere.hbase.client;

import belvedere.hbase.server.PrefixFilter;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The records of one state table.
 *
 * <p>A row is slot, id of the table (nothing if the HBase table is its own), key. The first
 * qualifier is the stamp: a flag, 1 for a record and 0 for a deleted one, then bytes that are given
 * and taken as the first column. A cell of the other qualifiers counts only if its timestamp is the
 * stamp's: a column that became NULL has no cell, and its old one is still there.
 */
public final class Records {
  static final byte RECORD = 1;
  static final byte[] FLOORS = Bytes.toBytes("f");
  private static final int FEWEST_IN_A_WALK = 64;
  private static final long PAGE_BYTES = 8 << 20;

  final TableName name;
  final byte[] id;
  final byte[] family;
  final byte[][] qualifiers;
  private final Client client;
  private final int[] order;

  Records(Client client, TableName name, byte[] id, String family, String[] qualifiers) {
    this.client = client;
    this.name = name;
    this.id = id;
    this.family = Bytes.toBytes(family);
    this.qualifiers = new byte[qualifiers.length][];
    Integer[] sorted = new Integer[qualifiers.length];
    for (int i = 0; i < qualifiers.length; i++) {
      this.qualifiers[i] = Bytes.toBytes(qualifiers[i]);
      sorted[i] = i;
    }
    Arrays.sort(sorted, (a, b) -> Bytes.compareTo(this.qualifiers[a], this.qualifiers[b]));
    this.order = Arrays.stream(sorted).mapToInt(Integer::intValue).toArray();
  }

  byte[] row(int slot, byte[] key) {
    return Bytes.add(new byte[] {(byte) slot}, id, key);
  }

  byte[] row(int slot, byte[] source, int start, int length) {
    byte[] row = new byte[1 + id.length + length];
    row[0] = (byte) slot;
    System.arraycopy(id, 0, row, 1, id.length);
    System.arraycopy(source, start, row, 1 + id.length, length);
    return row;
  }

  /** The row with the floor of a slot: that of the empty key, in a family of its own. */
  byte[] floorRow(int slot) {
    return row(slot, HConstants.EMPTY_BYTE_ARRAY);
  }

  /** The first row after those of a slot; empty for the end of the HBase table. */
  private byte[] end(int slot) {
    byte[] end = floorRow(slot);
    for (int at = end.length - 1; at >= 0; at--) {
      if (++end[at] != 0) {
        return Arrays.copyOf(end, at + 1);
      }
    }
    return HConstants.EMPTY_END_ROW;
  }

  /** Columns of the records with these keys, written before `until`; NULL where there is none. */
  public byte[] get(int slot, byte[] keys, long until) throws IOException {
    Columns in = Columns.read(keys);
    ColumnsWriter out = new ColumnsWriter(qualifiers.length);
    if (in.rows < FEWEST_IN_A_WALK) {
      add(out, getSome(slot, in, until));
    } else {
      add(out, new KeyWalk(client, this, rowsOf(slot, in), until).find());
    }
    return out.toBytes();
  }

  private Result[] getSome(int slot, Columns keys, long until) throws IOException {
    List<Get> gets = new ArrayList<>(keys.rows);
    for (byte[] row : rowsOf(slot, keys)) {
      gets.add(new Get(row).addFamily(family).setTimeRange(0, until));
    }
    try (Table table = client.table(name)) {
      return gets.size() == 1 ? new Result[] {table.get(gets.get(0))} : table.get(gets);
    }
  }

  private void add(ColumnsWriter out, Result[] results) {
    Cell[] cells = new Cell[qualifiers.length];
    for (Result result : results) {
      if (pick(result, cells)) {
        add(out, 0, cells);
      } else {
        for (int column = 0; column < qualifiers.length; column++) {
          out.addNull(column);
        }
      }
    }
  }

  private void add(ColumnsWriter out, int first, Cell[] cells) {
    for (int column = 0; column < cells.length; column++) {
      Cell cell = cells[column];
      int skipped = column == 0 ? 1 : 0;
      if (cell == null) {
        out.addNull(first + column);
      } else {
        int start = cell.getValueOffset() + skipped;
        out.add(first + column, cell.getValueArray(), start, cell.getValueLength() - skipped);
      }
    }
  }

  /** Finds the cells of a record by qualifier; whether there is a record. */
  private boolean pick(Result result, Cell[] cells) {
    Arrays.fill(cells, null);
    if (result == null || result.isEmpty()) {
      return false;
    }
    int at = 0;
    for (Cell cell : result.rawCells()) {
      int compared = 1;
      while (at < order.length && (compared = compare(cell, qualifiers[order[at]])) > 0) {
        at++;
      }
      if (at < order.length && compared == 0) {
        cells[order[at]] = cell;
      }
    }
    return isRecord(cells[0]) && dropOld(cells);
  }

  private static int compare(Cell cell, byte[] qualifier) {
    return Bytes.compareTo(
        cell.getQualifierArray(),
        cell.getQualifierOffset(),
        cell.getQualifierLength(),
        qualifier,
        0,
        qualifier.length);
  }

  private static boolean isRecord(Cell stamp) {
    return stamp != null
        && stamp.getValueLength() > 0
        && stamp.getValueArray()[stamp.getValueOffset()] == RECORD;
  }

  private static boolean dropOld(Cell[] cells) {
    for (int column = 1; column < cells.length; column++) {
      if (cells[column] != null && cells[column].getTimestamp() != cells[0].getTimestamp()) {
        cells[column] = null;
      }
    }
    return true;
  }

  /**
   * Keys and columns of the records in a range, written before `until`: at most `rows` rows, deleted
   * ones counted. A high of null is the end; `after` says that low itself is left out.
   */
  public Page scan(
      int slot, byte[] low, boolean after, byte[] high, long until, boolean reverse, int rows)
      throws IOException {
    byte[] start = row(slot, low);
    byte[] stop = high == null ? end(slot) : row(slot, high);
    Scan scan = new Scan().addFamily(family).setTimeRange(0, until);
    if (reverse) {
      scan.setReversed(true).withStartRow(stop, false).withStopRow(start, true);
    } else {
      scan.withStartRow(start, !after).withStopRow(stop, false);
    }
    ColumnsWriter out = new ColumnsWriter(1 + qualifiers.length);
    Cell[] cells = new Cell[qualifiers.length];
    byte[] last = null;
    int seen = 0;
    try (Table table = client.table(name);
        ResultScanner results = table.getScanner(scan.setLimit(rows).setCaching(rows))) {
      for (Result result; (result = results.next()) != null; ) {
        seen++;
        last = result.getRow();
        if (pick(result, cells)) {
          addKey(out, 0, last);
          add(out, 1, cells);
        }
        if (out.size() > PAGE_BYTES) {
          seen = rows;
          break;
        }
      }
    }
    return new Page(out.toBytes(), seen < rows ? null : key(last));
  }

  private void addKey(ColumnsWriter out, int column, byte[] row) {
    out.add(column, row, 1 + id.length, row.length - 1 - id.length);
  }

  private byte[] key(byte[] row) {
    return Arrays.copyOfRange(row, 1 + id.length, row.length);
  }

  /**
   * Records whose key begins with one of the prefixes, from number `first` on: number, key, columns.
   * At most `limit` for each prefix, `counted` of the first having been given; at most `rows`. A
   * last key that is not null is the one that was given last.
   */
  public Page prefixes(
      int slot, byte[] prefixes, int first, byte[] last, int counted, int limit, int rows, long until)
      throws IOException {
    Prefixes walk = new Prefixes(rowsOf(slot, Columns.read(prefixes)), first, counted, limit);
    PrefixFilter filter = new PrefixFilter(walk.left(), counted, limit);
    byte[] from = last == null ? walk.start() : row(slot, last);
    Scan scan = new Scan().addFamily(family).setTimeRange(0, until).setFilter(filter);
    scan.withStartRow(from, last == null).withStopRow(walk.end(), false);
    ColumnsWriter out = new ColumnsWriter(2 + qualifiers.length);
    Cell[] cells = new Cell[qualifiers.length];
    byte[] row = null;
    boolean isFull = false;
    try (Table table = client.table(name);
        ResultScanner results = table.getScanner(scan.setLimit(rows).setCaching(rows))) {
      for (Result result; !isFull && (result = results.next()) != null; ) {
        row = result.getRow();
        if (pick(result, cells) && walk.take(row)) {
          out.addLong(0, walk.number());
          addKey(out, 1, row);
          add(out, 2, cells);
        }
        isFull = out.rows() >= rows || out.size() > PAGE_BYTES;
      }
    }
    return new Page(out.toBytes(), isFull ? key(row) : null, walk.number(), walk.counted());
  }

  private byte[][] rowsOf(int slot, Columns keys) {
    byte[][] rows = new byte[keys.rows][];
    for (int i = 0; i < rows.length; i++) {
      rows[i] = row(slot, keys.bytes, keys.start(0, i), keys.length(0, i));
    }
    return rows;
  }

  /**
   * Removes versions that only readers below `keep` need, of at most `rows` rows after a key. Of the
   * versions at or below it the newest stays, unless it is the stamp of a deleted record. Delete
   * markers carry timestamps of what they remove: what is written later is never hidden by them.
   * The page counts the rows of which something was removed.
   */
  public Page sweep(int slot, byte[] last, long keep, int rows) throws IOException {
    Scan scan = stamps(slot, last).setTimeRange(0, keep + 1).readAllVersions();
    return remove(scan, rows, this::removable);
  }

  /** Removes whole records, of a table that is dropped. */
  public Page erase(int slot, byte[] last, int rows) throws IOException {
    return remove(stamps(slot, last), rows, result -> result.rawCells()[0].getTimestamp());
  }

  private Scan stamps(int slot, byte[] last) {
    byte[] from = last == null ? floorRow(slot) : row(slot, last);
    Scan scan = new Scan().addColumn(family, qualifiers[0]);
    return scan.withStartRow(from, last == null).withStopRow(end(slot), false);
  }

  /** The timestamp up to which versions of a row can go, -1 if none. Newest versions come first. */
  private long removable(Result versions) {
    Cell newest = versions.rawCells()[0];
    if (!isRecord(newest)) {
      return newest.getTimestamp();
    }
    return versions.size() > 1 ? newest.getTimestamp() - 1 : -1;
  }

  private interface Removable {
    long upTo(Result result);
  }

  private Page remove(Scan scan, int rows, Removable removable) throws IOException {
    List<Delete> deletes = new ArrayList<>();
    byte[] last = null;
    int seen = 0;
    try (Table table = client.table(name);
        ResultScanner results = table.getScanner(scan.setLimit(rows).setCaching(rows))) {
      for (Result result; (result = results.next()) != null; ) {
        seen++;
        last = result.getRow();
        long upTo = removable.upTo(result);
        if (upTo >= 0) {
          deletes.add(new Delete(last).addFamily(family, upTo));
        }
      }
      int count = deletes.size();
      table.delete(deletes);
      return new Page(null, seen < rows ? null : key(last), seen, count);
    }
  }

  /** The row that `Cells` reads and writes floors and counts in. */
  public byte[] floorRowOf(int slot) {
    return floorRow(slot);
  }
}

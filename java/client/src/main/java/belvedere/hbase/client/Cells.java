package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Cells of any table with their timestamps: few rows, written and read as they are.
 *
 * <p>Columns in and out are row, family, qualifier, timestamp, kind, value. A kind is P for a put,
 * C for the deletion of a column up to the timestamp, F for that of a family.
 */
public final class Cells {
  private static final int ROW = 0;
  private static final int FAMILY = 1;
  private static final int QUALIFIER = 2;
  private static final int TIMESTAMP = 3;
  private static final int KIND = 4;
  private static final int VALUE = 5;

  private final Client client;
  private final TableName name;

  Cells(Client client, TableName name) {
    this.client = client;
    this.name = name;
  }

  /** The newest cells of some families of a row, each family from a timestamp on; one snapshot. */
  public byte[] newest(byte[] row, String[] families, long[] since) throws IOException {
    Get get = new Get(row);
    for (int i = 0; i < families.length; i++) {
      byte[] family = Bytes.toBytes(families[i]);
      get.addFamily(family);
      get.setColumnFamilyTimeRange(family, since[i], Long.MAX_VALUE);
    }
    return pack(get);
  }

  /** All versions of one column of a row, the newest first. */
  public byte[] versions(byte[] row, String family, byte[] qualifier) throws IOException {
    Get get = new Get(row).addColumn(Bytes.toBytes(family), qualifier);
    return pack(get.readAllVersions());
  }

  /** The value that a cell had at exactly this timestamp; null if there is none. */
  public byte[] valueAt(byte[] row, String family, byte[] qualifier, long timestamp)
      throws IOException {
    Get get = new Get(row).addColumn(Bytes.toBytes(family), qualifier).setTimestamp(timestamp);
    try (Table table = client.table(name)) {
      return table.get(get).value();
    }
  }

  private byte[] pack(Get get) throws IOException {
    ColumnsWriter out = new ColumnsWriter(VALUE + 1);
    try (Table table = client.table(name)) {
      Result found = table.get(get);
      for (Cell cell : found.isEmpty() ? new Cell[0] : found.rawCells()) {
        out.add(ROW, CellUtil.cloneRow(cell));
        out.add(FAMILY, CellUtil.cloneFamily(cell));
        out.add(QUALIFIER, CellUtil.cloneQualifier(cell));
        out.addLong(TIMESTAMP, cell.getTimestamp());
        out.add(KIND, new byte[] {'P'});
        out.add(VALUE, CellUtil.cloneValue(cell));
      }
    }
    return out.toBytes();
  }

  /**
   * Applies the cells, all of one row, if a cell of that row has the expected value, or is absent
   * if that is null. False says that it was different when the server last looked, which may have
   * been the second time: a call whose answer is lost is repeated by HBase's client.
   */
  public boolean change(byte[] row, String family, byte[] qualifier, byte[] expected, byte[] cells)
      throws IOException {
    CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
    byte[] checked = Bytes.toBytes(family);
    if (expected == null) {
      check.ifNotExists(checked, qualifier);
    } else {
      check.ifEquals(checked, qualifier, expected);
    }
    Columns columns = Columns.read(cells);
    RowMutations mutations = mutations(columns, 0, columns.rows);
    try (Table table = client.table(name)) {
      return table.checkAndMutate(check.build(mutations)).isSuccess();
    }
  }

  /** Applies cells, those of one row together; cells of a row stand side by side. */
  public void apply(byte[] cells) throws IOException {
    Columns columns = Columns.read(cells);
    List<Row> rows = new ArrayList<>();
    for (int from = 0; from < columns.rows; ) {
      int to = from + 1;
      while (to < columns.rows && Bytes.equals(columns.get(ROW, from), columns.get(ROW, to))) {
        to++;
      }
      rows.add(mutations(columns, from, to));
      from = to;
    }
    try (Table table = client.table(name)) {
      table.batch(rows, new Object[rows.size()]);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException(error);
    }
  }

  /** Deletes are applied before puts, else a put would be hidden by its own row's deletes. */
  private static RowMutations mutations(Columns cells, int from, int to) throws IOException {
    byte[] row = cells.get(ROW, from);
    Put put = new Put(row);
    Delete delete = new Delete(row, HConstants.LATEST_TIMESTAMP);
    for (int i = from; i < to; i++) {
      byte[] family = cells.get(FAMILY, i);
      byte[] qualifier = cells.get(QUALIFIER, i);
      long timestamp = cells.getLong(TIMESTAMP, i);
      switch (cells.get(KIND, i)[0]) {
        case 'P' -> put.addColumn(family, qualifier, timestamp, cells.get(VALUE, i));
        case 'C' -> delete.addColumns(family, qualifier, timestamp);
        case 'F' -> delete.addFamily(family, timestamp);
        default -> throw new IOException("a cell is of an unknown kind");
      }
    }
    RowMutations mutations = new RowMutations(row);
    for (Mutation each : new Mutation[] {delete, put}) {
      if (!each.isEmpty()) {
        mutations.add(each);
      }
    }
    return mutations;
  }
}

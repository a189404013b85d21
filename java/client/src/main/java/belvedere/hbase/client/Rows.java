package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/**
 * Rows of a table that is the user's: some of its columns, as any client reads and writes them.
 *
 * <p>Nothing but these columns is ever touched: a row that is deleted here keeps what it has besides.
 */
public final class Rows {
  private static final int ROWS_IN_A_CALL = 1_000;
  private static final long PAGE_BYTES = 8 << 20;

  private final Client client;
  private final TableName name;
  private final byte[][] families;
  private final byte[][] qualifiers;

  /** Places are two of {@link Columns}: families and qualifiers. */
  Rows(Client client, TableName name, byte[] places) {
    Columns columns = Columns.read(places);
    this.client = client;
    this.name = name;
    this.families = new byte[columns.rows][];
    this.qualifiers = new byte[columns.rows][];
    for (int i = 0; i < columns.rows; i++) {
      families[i] = columns.get(0, i);
      qualifiers[i] = columns.get(1, i);
    }
  }

  /** The newest cells of rows, a column for each place; NULL where there is none. */
  public byte[] get(byte[] rows) throws IOException {
    Columns in = Columns.read(rows);
    List<Future<Result[]>> parts = new ArrayList<>();
    for (int start = 0; start < in.rows; start += ROWS_IN_A_CALL) {
      int from = start;
      int to = Math.min(in.rows, start + ROWS_IN_A_CALL);
      parts.add(client.submit(() -> getSome(in, from, to)));
    }
    ColumnsWriter out = new ColumnsWriter(qualifiers.length);
    for (Result[] some : Client.await(parts)) {
      for (Result result : some) {
        add(out, 0, result);
      }
    }
    return out.toBytes();
  }

  private Result[] getSome(Columns rows, int from, int to) throws IOException {
    List<Get> gets = new ArrayList<>(to - from);
    for (int i = from; i < to; i++) {
      Get get = new Get(rows.get(0, i));
      for (int column = 0; column < qualifiers.length; column++) {
        get.addColumn(families[column], qualifiers[column]);
      }
      gets.add(get);
    }
    try (Table table = client.table(name)) {
      return table.get(gets);
    }
  }

  private void add(ColumnsWriter out, int first, Result result) {
    for (int column = 0; column < qualifiers.length; column++) {
      Cell cell = result.getColumnLatestCell(families[column], qualifiers[column]);
      if (cell == null) {
        out.addNull(first + column);
      } else {
        int start = cell.getValueOffset();
        out.add(first + column, cell.getValueArray(), start, cell.getValueLength());
      }
    }
  }

  /**
   * Rows from `low` on (`after` leaves it out) to before `high` (null: to the end), at most so many:
   * their keys and cells. Rows without any of the columns are not found.
   */
  public Page scan(byte[] low, boolean after, byte[] high, int rows) throws IOException {
    Scan scan = new Scan().withStartRow(low, !after);
    scan.withStopRow(high == null ? HConstants.EMPTY_END_ROW : high, false);
    for (int column = 0; column < qualifiers.length; column++) {
      scan.addColumn(families[column], qualifiers[column]);
    }
    ColumnsWriter out = new ColumnsWriter(1 + qualifiers.length);
    byte[] last = null;
    boolean isFull = false;
    try (Table table = client.table(name);
        ResultScanner results = table.getScanner(scan.setLimit(rows).setCaching(rows))) {
      for (Result result; !isFull && (result = results.next()) != null; ) {
        last = result.getRow();
        out.add(0, last);
        add(out, 1, result);
        isFull = out.rows() >= rows || out.size() > PAGE_BYTES;
      }
    }
    return new Page(out.toBytes(), isFull ? last : null);
  }

  /**
   * Writes rows in their order: key, whether it is put (NULL: deleted), and a column for each place,
   * where NULL deletes the column. Each row is written as one; the region servers give the time.
   */
  public void write(byte[] packed) throws IOException, InterruptedException {
    Columns in = Columns.read(packed);
    List<Row> actions = new ArrayList<>(in.rows);
    for (int i = 0; i < in.rows; i++) {
      actions.add(action(in, i));
    }
    try (Table table = client.table(name)) {
      table.batch(actions, new Object[actions.size()]);
    }
  }

  private Row action(Columns in, int i) throws IOException {
    byte[] row = in.get(0, i);
    Put put = new Put(row);
    Delete delete = new Delete(row);
    for (int column = 0; column < qualifiers.length; column++) {
      if (in.isNull(1, i) || in.isNull(2 + column, i)) {
        delete.addColumns(families[column], qualifiers[column]);
      } else {
        put.addColumn(families[column], qualifiers[column], in.get(2 + column, i));
      }
    }
    if (put.isEmpty()) {
      return delete;
    }
    return delete.isEmpty() ? put : RowMutations.of(List.of(put, delete));
  }
}

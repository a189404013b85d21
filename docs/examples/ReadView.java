import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Prints a view as of its last committed epoch, with HBase's client and nothing of Belvedere.
 *
 * <p>The view is `SELECT region, count(*) AS orders, sum(amount) AS total ... GROUP BY region`:
 * region is the key, the others are cells.
 */
public class ReadView {
  private static final byte[] VIEW = Bytes.toBytes("v");
  private static final byte[] STAMP = Bytes.toBytes("_");
  private static final byte[] CATALOG = Bytes.toBytes("catalog");
  private static final byte[] ENTRIES = Bytes.toBytes("c");

  /** Arguments: ZooKeeper's host:port, and the view's table, as in belvedere:revenue.12. */
  public static void main(String[] arguments) throws IOException {
    Configuration configuration = HBaseConfiguration.create();
    configuration.set("hbase.zookeeper.quorum", arguments[0]);
    TableName view = TableName.valueOf(arguments[1]);
    TableName catalog = TableName.valueOf(view.getNamespaceAsString(), "belvedere");
    try (Connection connection = ConnectionFactory.createConnection(configuration);
        Table state = connection.getTable(catalog);
        Table table = connection.getTable(view)) {
      read(state, table).forEach(System.out::println);
    }
  }

  /** All rows of one epoch. While they are read its history may be removed: then of a later one. */
  private static List<String> read(Table state, Table table) throws IOException {
    while (true) {
      long epoch = epoch(state);
      List<String> rows = scan(table, epoch);
      if (floor(state) <= epoch) { // after the last row, else a gap could go unnoticed
        return rows;
      }
    }
  }

  private static List<String> scan(Table table, long epoch) throws IOException {
    List<String> rows = new ArrayList<>();
    Scan scan = new Scan().addFamily(VIEW).setTimeRange(0, epoch + 1);
    try (ResultScanner results = table.getScanner(scan)) {
      for (Result row : results) {
        Cell stamp = row.getColumnLatestCell(VIEW, STAMP);
        if (CellUtil.cloneValue(stamp)[0] == 0) {
          continue; // deleted, as of this epoch
        }
        String region = text(row.getRow(), 1); // behind the slot
        Long orders = number(row, stamp, "orders");
        Long total = number(row, stamp, "total");
        rows.add("region=" + region + " orders=" + orders + " total=" + total);
      }
    }
    return rows;
  }

  /** A BIGINT; null if it is NULL. A cell that is older than the stamp is of an older record. */
  private static Long number(Result row, Cell stamp, String column) {
    Cell cell = row.getColumnLatestCell(VIEW, Bytes.toBytes(column));
    if (cell == null || cell.getTimestamp() != stamp.getTimestamp()) {
      return null;
    }
    return Bytes.toLong(CellUtil.cloneValue(cell));
  }

  /** A STRING of a key: 01, the bytes with 00 written as 00 FF, 00; or 00 alone, which is NULL. */
  private static String text(byte[] row, int at) {
    if (row[at] == 0) {
      return null;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int i = at + 1; row[i] != 0 || (i + 1 < row.length && row[i + 1] == -1); i++) {
      bytes.write(row[i]);
      if (row[i] == 0) {
        i++;
      }
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  /** The last committed epoch: the first number of the head. */
  private static long epoch(Table state) throws IOException {
    byte[] head = entry(state, "head");
    return head == null ? 0 : ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getLong(1);
  }

  /** The epoch below which history may be gone. */
  private static long floor(Table state) throws IOException {
    byte[] floor = entry(state, "floor");
    return floor == null ? 0 : Long.parseLong(Bytes.toString(floor, 1));
  }

  /** An entry of the catalog: a byte that says that it is there, then its value. */
  private static byte[] entry(Table state, String name) throws IOException {
    byte[] qualifier = Bytes.toBytes(name);
    return state.get(new Get(CATALOG).addColumn(ENTRIES, qualifier)).getValue(ENTRIES, qualifier);
  }
}

package belvedere.hbase.client;

import belvedere.hbase.server.CaptureDirectory;
import belvedere.hbase.server.Frame;
import belvedere.hbase.server.ScanFile;
import java.io.IOException;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Puts the rows of a table into the log, as they are found: with all versions and delete markers,
 * else a put that a marker hides would show. The cells merge with what is captured meanwhile.
 */
public final class ScanFrames {
  private static final int ROWS_AT_ONCE = 1000;
  private static final long BYTES_AT_ONCE = 4L << 20;
  private static final int FRAME_BYTES = 4 << 20;

  private ScanFrames() {}

  /** Rows with low <= row < high, an empty end is open. The file appears when it is complete. */
  public static long write(
      String quorum, String directory, String table, byte[] low, byte[] high, String[] families)
      throws IOException {
    Connection connection = Connections.of(quorum);
    CaptureDirectory place = new CaptureDirectory(directory, connection.getConfiguration());
    long rows = 0;
    try (Table from = connection.getTable(TableName.valueOf(table));
        ResultScanner results = from.getScanner(scan(low, high, families));
        ScanFile file = new ScanFile(place, UUID.randomUUID().toString())) {
      Frame frame = new Frame("");
      for (Result result : results) {
        add(frame, table, result);
        rows++;
        if (frame.size() >= FRAME_BYTES) {
          file.write(frame);
          frame = new Frame("");
        }
      }
      if (frame.operations() > 0) {
        file.write(frame);
      }
      if (rows > 0) {
        file.publish();
      }
    }
    return rows;
  }

  private static Scan scan(byte[] low, byte[] high, String[] families) {
    Scan scan = new Scan().withStartRow(low).withStopRow(high);
    scan.setRaw(true).readAllVersions().setCacheBlocks(false);
    scan.setCaching(ROWS_AT_ONCE).setMaxResultSize(BYTES_AT_ONCE);
    for (String family : families) {
      scan.addFamily(Bytes.toBytes(family));
    }
    return scan;
  }

  /** Sequence id 0: a scan loses against the log where timestamps are equal. */
  private static void add(Frame frame, String table, Result row) {
    frame.edit(table, "", 0, System.currentTimeMillis());
    for (Cell cell : row.rawCells()) {
      frame.add(cell);
    }
  }
}

package belvedere.hbase.client;

import belvedere.hbase.server.CaptureDirectory;
import belvedere.hbase.server.Frame;
import belvedere.hbase.server.ScanFile;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter.RowRange;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The rows of a table as they are found: with all versions and delete markers, else a put that a
 * marker hides would show. Put into the log, the cells merge with what is captured meanwhile.
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

  /** The first rows behind one (or from the beginning), as a frame; fewer than asked: the end. */
  public static byte[] page(
      String quorum, String table, byte[] after, int rows, String[] families) throws IOException {
    Scan scan = scan(HConstants.EMPTY_BYTE_ARRAY, HConstants.EMPTY_BYTE_ARRAY, families);
    scan.withStartRow(after, after.length == 0).setLimit(rows);
    return frame(quorum, table, scan);
  }

  /** Some rows, as far as they have cells, as a frame. HBase has no raw Get. */
  public static byte[] rows(String quorum, String table, byte[][] rows, String[] families)
      throws IOException {
    List<RowRange> ranges = new ArrayList<>();
    for (byte[] row : rows) {
      ranges.add(new RowRange(row, true, row, true));
    }
    Scan scan = scan(HConstants.EMPTY_BYTE_ARRAY, HConstants.EMPTY_BYTE_ARRAY, families);
    return frame(quorum, table, scan.setFilter(new MultiRowRangeFilter(ranges)));
  }

  private static byte[] frame(String quorum, String table, Scan scan) throws IOException {
    Frame frame = new Frame("");
    try (Table from = Connections.of(quorum).getTable(TableName.valueOf(table));
        ResultScanner results = from.getScanner(scan)) {
      for (Result result : results) {
        add(frame, table, result);
      }
    }
    return frame.encode(Frame.Kind.SCAN);
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

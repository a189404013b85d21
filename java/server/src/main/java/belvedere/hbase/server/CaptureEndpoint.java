package belvedere.hbase.server;

import belvedere.hbase.server.Frame.Kind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.Server;
import org.apache.hadoop.hbase.replication.BaseReplicationEndpoint;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Captures changes: what replication delivers becomes one frame of a segment file, and is
 * acknowledged when the frame is durable. HBase keeps its log until then.
 *
 * <p>There is one instance for each queue: a region server's own, or that of a dead one which it
 * has taken over. A queue may be delivered again, whole or in part; sequence ids tell.
 */
public class CaptureEndpoint extends BaseReplicationEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(CaptureEndpoint.class);
  private static final UUID TARGET = UUID.fromString("62656c76-6564-4572-a000-000000000001");
  private static final String ROLL_BYTES = "67108864";

  private CaptureDirectory directory;
  private String marks;
  private long roll;
  private int redeliver;
  private Segment segment;

  @Override
  public UUID getPeerUUID() {
    return TARGET;
  }

  @Override
  public void start() {
    startAsync();
  }

  @Override
  public void stop() {
    stopAsync();
  }

  @Override
  protected void doStart() {
    try {
      Map<String, String> settings = ctx.getPeerConfig().getConfiguration();
      String place = settings.get(CaptureSettings.DIRECTORY);
      if (place == null) {
        String missing = CaptureSettings.DIRECTORY;
        throw new IOException("the peer " + ctx.getPeerId() + " does not say " + missing);
      }
      directory = new CaptureDirectory(place, ctx.getConfiguration());
      marks = settings.get(CaptureSettings.MARKS);
      roll = Long.parseLong(settings.getOrDefault(CaptureSettings.ROLL, ROLL_BYTES));
      redeliver = Integer.parseInt(settings.getOrDefault(CaptureSettings.REDELIVER, "0"));
      notifyStarted();
    } catch (IOException | RuntimeException error) {
      LOG.error("change capture could not start", error);
      notifyFailed(error);
    }
  }

  @Override
  protected synchronized void doStop() {
    try {
      closeSegment();
    } catch (IOException error) {
      LOG.warn("the last segment was not closed: it stays until this server has ended", error);
    }
    notifyStopped();
  }

  /** True when everything is durable; an exception makes HBase wait and deliver again. */
  @Override
  public synchronized boolean replicate(ReplicateContext context) {
    Frame frame = new Frame(queue(context.getWalGroupId()));
    for (WAL.Entry entry : context.getEntries()) {
      add(frame, entry);
    }
    if (frame.isEmpty()) {
      return true;
    }
    try {
      append(frame);
    } catch (IOException error) {
      abandonSegment();
      throw new UncheckedIOException("changes were not captured; they are delivered again", error);
    }
    return !isRedelivered();
  }

  private boolean isRedelivered() {
    if (redeliver == 0) {
      return false;
    }
    redeliver--;
    return true;
  }

  private void append(Frame frame) throws IOException {
    if (!isRunning()) {
      throw new IOException("the endpoint has been stopped");
    }
    if (segment == null) {
      segment = new Segment(directory, name());
    }
    segment.write(frame, frame.operations() > 0 ? Kind.WAL : Kind.MARK);
    if (segment.length() >= roll) {
      closeSegment();
    }
  }

  private void add(Frame frame, WAL.Entry entry) {
    String table = entry.getKey().getTableName().getNameAsString();
    String region = Bytes.toString(entry.getKey().getEncodedRegionName());
    frame.edit(table, region, entry.getKey().getSequenceId(), entry.getKey().getWriteTime());
    boolean isMark = table.equals(marks);
    for (Cell cell : entry.getEdit().getCells()) {
      if (CellUtil.matchingColumn(cell, WALEdit.METAFAMILY, WALEdit.BULK_LOAD)) {
        frame.bulkLoad();
      } else if (CellUtil.matchingFamily(cell, WALEdit.METAFAMILY)) {
        continue;
      } else if (isMark) {
        frame.mark(CellUtil.cloneRow(cell), Bytes.toLong(CellUtil.cloneValue(cell)));
      } else {
        frame.add(cell);
      }
    }
  }

  /** The server whose log this is, which may be a dead one. */
  private static String queue(String walGroup) {
    return walGroup == null ? "" : URLDecoder.decode(walGroup, StandardCharsets.UTF_8);
  }

  /** Who writes it is in the name: files of a dead server may be removed without a last frame. */
  private String name() {
    // HBase 2.6 hands the region server over as what is told of failures, and in no other way
    boolean known = ctx.getAbortable() instanceof Server;
    String server = known ? ((Server) ctx.getAbortable()).getServerName().getServerName() : "";
    return server + "_" + UUID.randomUUID() + CaptureDirectory.ENDING;
  }

  private void closeSegment() throws IOException {
    Segment closing = segment;
    segment = null;
    if (closing != null) {
      closing.close();
    }
  }

  private void abandonSegment() {
    Segment torn = segment;
    segment = null;
    try {
      if (torn != null) {
        torn.abandon();
      }
    } catch (IOException error) {
      LOG.warn("a torn segment was not closed", error);
    }
  }
}

package belvedere.hbase.server;

import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;

/**
 * On HDFS an `hsync` must tell the name node the length of the file, else listings lag behind. A
 * class of its own, because clients have no HDFS on their class path and need none.
 */
final class HdfsLength {
  private HdfsLength() {}

  static void sync(FSDataOutputStream out) throws IOException {
    if (out instanceof HdfsDataOutputStream hdfs) {
      hdfs.hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
    } else {
      out.hsync();
    }
  }
}

package belvedere.hbase.server;

import belvedere.hbase.server.Frame.Kind;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;

/** Frames of a scan: a file that gets its name when it is complete. Readers see all or nothing. */
public final class ScanFile implements AutoCloseable {
  private static final String UNFINISHED = ".scanning";
  private final CaptureDirectory directory;
  private final String name;
  private final FSDataOutputStream out;
  private boolean published;

  public ScanFile(CaptureDirectory directory, String id) throws IOException {
    this.directory = directory;
    this.name = "scan_" + id;
    this.out = directory.create(name + UNFINISHED);
  }

  public void write(Frame frame) throws IOException {
    out.write(frame.encode(Kind.SCAN));
  }

  public void publish() throws IOException {
    out.write(new Frame("").encode(Kind.END));
    out.hsync();
    out.close();
    directory.rename(name + UNFINISHED, name + CaptureDirectory.ENDING);
    published = true;
  }

  /** What was not published is removed. */
  @Override
  public void close() throws IOException {
    if (!published) {
      out.close();
      directory.delete(name + UNFINISHED);
    }
  }
}

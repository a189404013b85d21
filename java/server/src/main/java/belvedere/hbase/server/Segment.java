package belvedere.hbase.server;

import belvedere.hbase.server.Frame.Kind;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.FSDataOutputStream;

/**
 * A file of frames while it is written.
 *
 * <p>A frame comes after what other files had when it was written, if something in them may belong
 * before it: a region is new in this file, or its sequence ids do not go on where they stopped here
 * (it may have been elsewhere meanwhile). A serial peer gives us such an edit only after all
 * earlier ones of the region are acknowledged, which they are when they are in a file. So the frame
 * names the other files and their lengths, and no reader has to guess an order.
 */
final class Segment {
  private final String name;
  private final CaptureDirectory directory;
  private final FSDataOutputStream out;
  private final Map<String, Long> lastSequences = new HashMap<>();
  private final Map<String, Long> named = new HashMap<>();
  private long length;

  Segment(CaptureDirectory directory, String name) throws IOException {
    this.directory = directory;
    this.name = name;
    this.out = directory.create(name);
  }

  long length() {
    return length;
  }

  /** Durable when this returns. */
  void write(Frame frame, Kind kind) throws IOException {
    if (isDetached(frame)) {
      nameOthers(frame);
    }
    byte[] bytes = frame.encode(kind);
    out.write(bytes);
    sync();
    length += bytes.length;
  }

  /** The last frame says that no other will follow, so that the file may be removed one day. */
  void close() throws IOException {
    try (out) {
      out.write(new Frame("").encode(Kind.END));
      sync();
    }
  }

  /** After a torn frame nothing may follow. */
  void abandon() throws IOException {
    out.close();
  }

  private boolean isDetached(Frame frame) {
    boolean detached = false;
    for (Frame.Region region : frame.regions()) {
      Long last = lastSequences.put(region.name, region.highest);
      if (last == null || region.lowest != last + 1 || region.hasGap) {
        region.flags |= Frame.Region.NEW;
        detached = true;
      }
    }
    return detached;
  }

  /** Only what has changed since this file last named it. */
  private void nameOthers(Frame frame) throws IOException {
    for (Map.Entry<String, Long> other : directory.lengths().entrySet()) {
      boolean changed = !other.getValue().equals(named.put(other.getKey(), other.getValue()));
      if (changed && !other.getKey().equals(name)) {
        frame.after(other.getKey(), other.getValue());
      }
    }
  }

  private void sync() throws IOException {
    if (directory.isLocal()) {
      out.hsync();
    } else {
      HdfsLength.sync(out);
    }
  }
}

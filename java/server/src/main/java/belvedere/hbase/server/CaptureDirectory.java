package belvedere.hbase.server;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** The directory into which changes are captured, on any file system that can `hsync`. */
public final class CaptureDirectory {
  static final String ENDING = ".frames";
  private final FileSystem files;
  private final Path path;

  public CaptureDirectory(String place, Configuration configuration) throws IOException {
    path = new Path(place);
    files = fileSystem(path, configuration);
    files.mkdirs(path);
  }

  /** The local file system that Hadoop gives by default adds checksums, and does not `hsync`. */
  private static FileSystem fileSystem(Path path, Configuration configuration) throws IOException {
    String scheme = path.toUri().getScheme();
    if (scheme != null && !scheme.equals("file")) {
      return path.getFileSystem(configuration);
    }
    FileSystem raw = new RawLocalFileSystem();
    raw.initialize(java.net.URI.create("file:///"), configuration);
    return raw;
  }

  boolean isLocal() {
    return files instanceof RawLocalFileSystem;
  }

  FSDataOutputStream create(String name) throws IOException {
    return files.create(new Path(path, name), false);
  }

  void delete(String name) throws IOException {
    files.delete(new Path(path, name), false);
  }

  void rename(String from, String to) throws IOException {
    if (!files.rename(new Path(path, from), new Path(path, to))) {
      throw new IOException("could not rename " + from + " to " + to + " in " + path);
    }
  }

  /** The lengths of all segment files, as readers find them. */
  Map<String, Long> lengths() throws IOException {
    Map<String, Long> lengths = new TreeMap<>();
    try {
      for (FileStatus each : files.listStatus(path)) {
        if (each.getPath().getName().endsWith(ENDING)) {
          lengths.put(each.getPath().getName(), each.getLen());
        }
      }
    } catch (FileNotFoundException gone) {
      // A file that was trimmed while they were listed is there in no order: list again.
      return lengths();
    }
    return lengths;
  }
}

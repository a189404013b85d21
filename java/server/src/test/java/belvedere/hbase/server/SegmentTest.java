package belvedere.hbase.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import belvedere.hbase.server.Frame.Kind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which frames name the other files, and how many of them. */
class SegmentTest {
  private static final int FILES = 64; // where a head has their number
  @TempDir Path place;
  private CaptureDirectory directory;
  private Segment one;
  private Segment two;

  @BeforeEach
  void open() throws IOException {
    directory = new CaptureDirectory(place.toUri().toString(), new Configuration(false));
    one = new Segment(directory, "one.frames");
    two = new Segment(directory, "two.frames");
    two.write(frame("other", 1), Kind.WAL);
  }

  @Test
  void aRegionThatIsNewInTheFileComesAfterTheOtherFiles() throws IOException {
    assertEquals(1, namedBy(frame("region", 1)));
  }

  @Test
  void sequenceIdsThatGoOnNameNothing() throws IOException {
    namedBy(frame("region", 1, 2));
    two.write(frame("other", 2), Kind.WAL);
    assertEquals(0, namedBy(frame("region", 3)));
  }

  @Test
  void aRegionThatMayHaveBeenElsewhereComesAfterWhatIsThereNow() throws IOException {
    namedBy(frame("region", 1));
    two.write(frame("region", 2), Kind.WAL);
    assertEquals(1, namedBy(frame("region", 3)));
  }

  @Test
  void aGapInsideAFrameCountsToo() throws IOException {
    namedBy(frame("region", 1));
    two.write(frame("region", 3), Kind.WAL);
    assertEquals(1, namedBy(frame("region", 2, 4)));
  }

  @Test
  void aFileThatHasNotGrownIsNotNamedAgain() throws IOException {
    namedBy(frame("region", 1));
    assertEquals(0, namedBy(frame("another", 1)));
  }

  /** Write a frame into the first file; how many files it names. */
  private int namedBy(Frame frame) throws IOException {
    int begin = (int) one.length();
    one.write(frame, Kind.WAL);
    byte[] bytes = Files.readAllBytes(place.resolve("one.frames"));
    assertEquals(one.length(), bytes.length);
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(begin + FILES);
  }

  private static Frame frame(String region, long... sequences) {
    Frame frame = new Frame("queue");
    for (long sequence : sequences) {
      frame.edit("table", region, sequence, 0);
      frame.add(FrameTest.cell("row", "f", "q", Cell.Type.Put, 1, "value"));
    }
    return frame;
  }
}

package belvedere.hbase.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellBuilderFactory;
import org.apache.hadoop.hbase.CellBuilderType;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;
import org.junit.jupiter.api.Test;

class FrameTest {
  /** Python reads the same file and decodes its bytes: tests/unit/stores/test_hbase_frames.py. */
  @Test
  void aFrameHasTheBytesThatPythonDecodes() throws Exception {
    JsonObject expected = vector();
    Frame frame = frame(expected);
    byte[] bytes = frame.encode(Frame.Kind.valueOf(text(expected, "kind")));
    assertEquals(expected.get("operations").getAsInt(), frame.operations());
    assertEquals(text(expected, "bytes"), HexFormat.of().formatHex(bytes));
  }

  @Test
  void anEditThatReturnsToARowAddsToItsOperation() {
    Frame frame = new Frame("");
    frame.edit("t", "r", 1, 0);
    for (String row : new String[] {"a", "b", "a", "b", "b", "c"}) {
      frame.add(cell(row, "f", "q", Cell.Type.Put, 1, "v"));
    }
    assertEquals(3, frame.operations());
    frame.edit("t", "r", 2, 0);
    frame.add(cell("c", "f", "q", Cell.Type.Put, 1, "v"));
    assertEquals(4, frame.operations());
  }

  private static JsonObject vector() throws Exception {
    try (Reader in =
        new InputStreamReader(
            FrameTest.class.getResourceAsStream("/frame.json"), StandardCharsets.UTF_8)) {
      return JsonParser.parseReader(in).getAsJsonObject();
    }
  }

  private static Frame frame(JsonObject content) {
    Frame frame = new Frame(text(content, "queue"));
    for (JsonElement element : content.getAsJsonArray("edits")) {
      JsonObject edit = element.getAsJsonObject();
      String region = text(edit, "region");
      frame.edit(text(edit, "table"), region, number(edit, "sequence"), number(edit, "time"));
      edit.getAsJsonArray("cells").forEach(cell -> frame.add(cell(cell.getAsJsonObject())));
      if (edit.getAsJsonArray("cells").isEmpty()) {
        frame.bulkLoad();
      }
    }
    for (JsonElement element : content.getAsJsonArray("marks")) {
      JsonObject mark = element.getAsJsonObject();
      frame.mark(text(mark, "row").getBytes(StandardCharsets.UTF_8), number(mark, "number"));
    }
    for (JsonElement element : content.getAsJsonArray("after")) {
      JsonObject file = element.getAsJsonObject();
      frame.after(text(file, "file"), number(file, "length"));
    }
    return frame;
  }

  private static Cell cell(JsonObject from) {
    return cell(
        text(from, "row"),
        text(from, "family"),
        text(from, "qualifier"),
        Cell.Type.valueOf(text(from, "type")),
        number(from, "timestamp"),
        text(from, "value"));
  }

  private static String text(JsonObject from, String name) {
    return from.get(name).getAsString();
  }

  private static long number(JsonObject from, String name) {
    return from.get(name).getAsLong();
  }

  static Cell cell(
      String row, String family, String qualifier, Cell.Type type, long timestamp, String value) {
    return CellBuilderFactory.create(CellBuilderType.DEEP_COPY)
        .setRow(row.getBytes(StandardCharsets.UTF_8))
        .setFamily(family.getBytes(StandardCharsets.UTF_8))
        .setQualifier(qualifier.getBytes(StandardCharsets.UTF_8))
        .setType(type)
        .setTimestamp(timestamp)
        .setValue(value.getBytes(StandardCharsets.UTF_8))
        .build();
  }
}

package belvedere.hbase.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

final class PrefixesTest {
  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  @Test
  void rowsAreCountedByPrefixAlsoThoseGivenBefore() {
    byte[][] prefixes = {bytes("a"), bytes("b"), bytes("d"), bytes("d\u00ff")};
    Prefixes walk = new Prefixes(prefixes, 1, 1, 2);
    assertArrayEquals(bytes("b"), walk.start());
    assertEquals(3, walk.left().length);
    assertTrue(walk.take(bytes("b2")));
    assertFalse(walk.take(bytes("b3")));
    assertTrue(walk.take(bytes("d")));
    assertEquals(2, walk.number());
    assertTrue(walk.take(bytes("d\u00fe\u00ff")));
    assertTrue(walk.take(bytes("d\u00ff\u00fe")));
    assertEquals(3, walk.number());
    assertEquals(1, walk.counted());
  }
}

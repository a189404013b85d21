package belvedere.hbase.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HexFormat;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Vectors are what Python's `belvedere.encoding.slots_of` gives. */
final class SlotsTest {
  @ParameterizedTest
  @CsvSource({
    "'', 255, 3",
    "61, 49, 5",
    "00, 255, 3",
    "01616263, 74, 4",
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627, 114, 5",
    "ffffffffffffffffff, 193, 1",
    "5ac3bc72696368, 191, 2",
  })
  void aKeyLivesWherePythonPutIt(String key, int of256, int of7) {
    byte[] bytes = HexFormat.of().parseHex(key);
    assertEquals(of256, Slots.of(bytes, 256));
    assertEquals(of7, Slots.of(bytes, 7));
  }
}

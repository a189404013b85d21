package belvedere.hbase.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class ColumnsTest {
  @Test
  void valuesComeBackAsTheyWentIn() {
    for (int rows : new int[] {0, 1, 7, 8, 9, 63, 64, 65, 1000}) {
      for (double nulls : new double[] {0, 0.3, 1}) {
        byte[][][] values = random(rows, nulls, new Random(rows));
        check(values, rows, Columns.read(write(values, rows)));
      }
    }
  }

  private static byte[][][] random(int rows, double nulls, Random draw) {
    byte[][][] values = new byte[3][rows][];
    for (byte[][] column : values) {
      for (int row = 0; row < rows; row++) {
        if (draw.nextDouble() >= nulls) {
          column[row] = new byte[draw.nextInt(40)];
          draw.nextBytes(column[row]);
        }
      }
    }
    return values;
  }

  private static byte[] write(byte[][][] values, int rows) {
    ColumnsWriter out = new ColumnsWriter(values.length);
    for (int row = 0; row < rows; row++) {
      for (int column = 0; column < values.length; column++) {
        byte[] value = values[column][row];
        if (value == null) {
          out.addNull(column);
        } else {
          out.add(column, value);
        }
      }
    }
    return out.toBytes();
  }

  private static void check(byte[][][] values, int rows, Columns found) {
    assertEquals(rows, found.rows);
    assertEquals(values.length, found.count);
    for (int column = 0; column < values.length; column++) {
      for (int row = 0; row < rows; row++) {
        byte[] value = values[column][row];
        assertEquals(value == null, found.isNull(column, row));
        assertArrayEquals(value == null ? new byte[0] : value, found.get(column, row));
      }
    }
  }

  /** The bytes that `tests/unit/stores/hbase/test_columns.py` holds Python to. */
  @Test
  void theBytesAreThoseOfPython() {
    ColumnsWriter out = new ColumnsWriter(2);
    out.add(0, new byte[] {1, 2});
    out.addNull(1);
    out.add(0, new byte[0]);
    out.add(1, new byte[] {3});
    String expected =
        "0200000000000000"
            + "0200000000000000"
            + "0000000000000000"
            + "0200000000000000"
            + "00000000020000000200000000000000"
            + "0102000000000000"
            + "0100000000000000"
            + "0100000000000000"
            + "0200000000000000"
            + "00000000000000000100000000000000"
            + "0300000000000000";
    assertEquals(expected, HexFormat.of().formatHex(out.toBytes()));
  }

  @Test
  void numbersAreLittleEndian() {
    ColumnsWriter out = new ColumnsWriter(1);
    out.addLong(0, -2);
    out.addLong(0, 1L << 40);
    Columns found = Columns.read(out.toBytes());
    assertEquals(-2, found.getLong(0, 0));
    assertEquals(1L << 40, found.getLong(0, 1));
    assertFalse(found.isNull(0, 1));
    assertTrue(found.get(0, 1)[5] == 1);
  }
}

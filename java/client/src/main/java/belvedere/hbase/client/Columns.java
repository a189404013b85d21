package belvedere.hbase.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Columns of byte strings in one array, as Python gives them and takes them.
 *
 * <pre>
 * rows, columns                       8 bytes each, little endian like everything here
 * each column: nulls, bytes           8 bytes each
 *              which are not NULL     a bit per row, only if some are NULL
 *              offsets                4 bytes each, one more than rows
 *              bytes
 * </pre>
 *
 * Every part is filled up to 8 bytes. These are the buffers of Arrow's binary arrays.
 */
final class Columns {
  final int rows;
  final int count;
  final byte[] bytes;
  private final int[] valid;
  private final int[] starts;
  private final int[][] offsets;

  private Columns(byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    this.bytes = bytes;
    this.rows = Math.toIntExact(buffer.getLong());
    this.count = Math.toIntExact(buffer.getLong());
    this.valid = new int[count];
    this.starts = new int[count];
    this.offsets = new int[count][rows + 1];
    for (int column = 0; column < count; column++) {
      find(buffer, column);
    }
  }

  static Columns read(byte[] bytes) {
    return new Columns(bytes);
  }

  private void find(ByteBuffer buffer, int column) {
    boolean hasNulls = buffer.getLong() > 0;
    int length = Math.toIntExact(buffer.getLong());
    valid[column] = hasNulls ? buffer.position() : -1;
    int after = buffer.position() + (hasNulls ? fill((rows + 7) / 8) : 0);
    buffer.position(after);
    buffer.asIntBuffer().get(offsets[column]);
    starts[column] = after + fill(4 * (rows + 1));
    buffer.position(starts[column] + fill(length));
  }

  boolean isNull(int column, int row) {
    int bits = valid[column];
    return bits >= 0 && (bytes[bits + row / 8] & 1 << row % 8) == 0;
  }

  int start(int column, int row) {
    return starts[column] + offsets[column][row];
  }

  int length(int column, int row) {
    return offsets[column][row + 1] - offsets[column][row];
  }

  byte[] get(int column, int row) {
    int start = start(column, row);
    return Arrays.copyOfRange(bytes, start, start + length(column, row));
  }

  long getLong(int column, int row) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong(start(column, row));
  }

  /** A length filled up to whole words. */
  static int fill(int length) {
    return length + 7 & ~7;
  }
}

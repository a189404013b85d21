package belvedere.hbase.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Makes {@link Columns}, value by value. All columns get the same number of values. */
final class ColumnsWriter {
  private final Column[] columns;

  ColumnsWriter(int count) {
    columns = new Column[count];
    for (int i = 0; i < count; i++) {
      columns[i] = new Column();
    }
  }

  void add(int column, byte[] source, int start, int length) {
    columns[column].add(source, start, length);
  }

  void add(int column, byte[] value) {
    columns[column].add(value, 0, value.length);
  }

  void addLong(int column, long value) {
    byte[] eight = new byte[8];
    ByteBuffer.wrap(eight).order(ByteOrder.LITTLE_ENDIAN).putLong(value);
    add(column, eight);
  }

  void addNull(int column) {
    columns[column].addNull();
  }

  int rows() {
    return columns[0].rows;
  }

  /** The bytes of all values. */
  long size() {
    long size = 0;
    for (Column column : columns) {
      size += column.size;
    }
    return size;
  }

  byte[] toBytes() {
    int size = 16;
    for (Column column : columns) {
      size = Math.addExact(size, column.packedSize());
    }
    ByteBuffer buffer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    buffer.putLong(rows()).putLong(columns.length);
    for (Column column : columns) {
      column.write(buffer);
    }
    return buffer.array();
  }

  private static final class Column {
    private int rows;
    private int nulls;
    private int size;
    private int[] offsets = new int[64];
    private byte[] valid = new byte[8];
    private byte[] bytes = new byte[1024];

    void add(byte[] source, int start, int length) {
      int end = Math.addExact(size, length);
      if (end > bytes.length) {
        bytes = Arrays.copyOf(bytes, grow(end));
      }
      System.arraycopy(source, start, bytes, size, length);
      size = end;
      next(true);
    }

    void addNull() {
      nulls++;
      next(false);
    }

    private void next(boolean isValid) {
      if (rows / 8 >= valid.length) {
        valid = Arrays.copyOf(valid, 2 * valid.length);
      }
      if (isValid) {
        valid[rows / 8] |= (byte) (1 << rows % 8);
      }
      rows++;
      if (rows >= offsets.length) {
        offsets = Arrays.copyOf(offsets, 2 * offsets.length);
      }
      offsets[rows] = size;
    }

    int packedSize() {
      int bits = nulls > 0 ? Columns.fill((rows + 7) / 8) : 0;
      return 16 + bits + Columns.fill(4 * (rows + 1)) + Columns.fill(size);
    }

    void write(ByteBuffer buffer) {
      buffer.putLong(nulls).putLong(size);
      if (nulls > 0) {
        int after = buffer.position() + Columns.fill((rows + 7) / 8);
        buffer.put(valid, 0, (rows + 7) / 8).position(after);
      }
      int after = buffer.position() + Columns.fill(4 * (rows + 1));
      buffer.asIntBuffer().put(offsets, 0, rows + 1);
      buffer.position(after);
      after += Columns.fill(size);
      buffer.put(bytes, 0, size).position(after);
    }

    private static int grow(int needed) {
      return (int) Math.min(Integer.MAX_VALUE - 8, Math.max(needed, 2L * needed));
    }
  }
}

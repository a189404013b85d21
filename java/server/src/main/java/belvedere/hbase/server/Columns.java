package belvedere.hbase.server;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Columns that grow, and write themselves as Arrow has them: little-endian, padded to 8 bytes. */
final class Columns {
  private static final int FIRST = 256;

  private Columns() {}

  static int padded(int size) {
    return (size + 7) & ~7;
  }

  /** Go on at a multiple of 8; what is skipped is zero already. */
  private static void pad(ByteBuffer to) {
    to.position(padded(to.position()));
  }

  static final class Longs {
    private long[] values = new long[FIRST];
    private int count;

    void add(long value) {
      if (count == values.length) {
        values = Arrays.copyOf(values, 2 * count);
      }
      values[count++] = value;
    }

    int count() {
      return count;
    }

    int size() {
      return 8 * count;
    }

    void write(ByteBuffer to) {
      to.asLongBuffer().put(values, 0, count);
      to.position(to.position() + size());
    }
  }

  static final class Ints {
    private int[] values = new int[FIRST];
    private int count;

    void add(int value) {
      if (count == values.length) {
        values = Arrays.copyOf(values, 2 * count);
      }
      values[count++] = value;
    }

    int count() {
      return count;
    }

    int size() {
      return padded(4 * count);
    }

    void write(ByteBuffer to) {
      to.asIntBuffer().put(values, 0, count);
      to.position(to.position() + 4 * count);
      pad(to);
    }
  }

  /** Texts of bytes one behind the other, with the offsets between them. */
  static final class Texts {
    private final Ints offsets = new Ints();
    private byte[] bytes = new byte[16 * FIRST];
    private int length;

    Texts() {
      offsets.add(0);
    }

    void add(byte[] from, int offset, int size) {
      if (length + size > bytes.length) {
        bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, Math.addExact(length, size)));
      }
      System.arraycopy(from, offset, bytes, length, size);
      length += size;
      offsets.add(length);
    }

    void add(byte[] text) {
      add(text, 0, text.length);
    }

    int length() {
      return length;
    }

    boolean lastEquals(byte[] other, int offset, int size) {
      int last = offsets.count - 1;
      int begin = last == 0 ? 0 : offsets.values[last - 1];
      return last > 0 && Arrays.equals(bytes, begin, length, other, offset, offset + size);
    }

    int size() {
      return offsets.size() + padded(length);
    }

    void write(ByteBuffer to) {
      offsets.write(to);
      to.put(bytes, 0, length);
      pad(to);
    }
  }

  static final class Flags {
    private byte[] values = new byte[FIRST];
    private int count;

    void add(byte value) {
      if (count == values.length) {
        values = Arrays.copyOf(values, 2 * count);
      }
      values[count++] = value;
    }

    int size() {
      return padded(count);
    }

    void write(ByteBuffer to) {
      to.put(values, 0, count);
      pad(to);
    }
  }
}

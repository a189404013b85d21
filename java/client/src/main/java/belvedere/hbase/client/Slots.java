package belvedere.hbase.client;

import java.util.zip.CRC32;

/**
 * Which slot a key lives in, so that other clients of HBase find the row of a view.
 *
 * <p>The hash is the CRC of zip files, begun with an empty register. {@link CRC32} always begins
 * with a full one, but the CRC of four bytes of ones leaves the register empty: they stand before
 * every key here.
 */
public final class Slots {
  private static final byte[] EMPTIES_THE_REGISTER = {-1, -1, -1, -1};

  private Slots() {}

  public static int of(byte[] key, int slots) {
    CRC32 crc = new CRC32();
    crc.update(EMPTIES_THE_REGISTER);
    crc.update(key);
    return (int) (crc.getValue() % slots);
  }
}

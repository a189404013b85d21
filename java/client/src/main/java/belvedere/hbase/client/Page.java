package belvedere.hbase.client;

/**
 * A part of what a scan finds, and where the next part begins.
 *
 * <p>Nothing stays open between pages: who takes long over one loses nothing.
 */
public final class Page {
  /** What was found, as {@link Columns}. */
  public final byte[] columns;

  /** The key after which the next page begins; null after the last page. */
  public final byte[] last;

  /** The number of the prefix in which the next page begins, and its records so far. */
  public final int prefix;

  public final int counted;

  Page(byte[] columns, byte[] last) {
    this(columns, last, 0, 0);
  }

  Page(byte[] columns, byte[] last, int prefix, int counted) {
    this.columns = columns;
    this.last = last;
    this.prefix = prefix;
    this.counted = counted;
  }
}

package belvedere.hbase.client;

import belvedere.hbase.server.PrefixFilter;
import java.util.Arrays;

/**
 * Which prefix a row belongs to, for rows in their order.
 *
 * <p>Counts again what the filter in the region server counts: a scanner that is opened again after
 * a region has moved begins to count anew.
 */
final class Prefixes {
  private static final byte[] END = {-1};
  private final byte[][] prefixes;
  private final int first;
  private final int limit;
  private int number;
  private int counted;

  Prefixes(byte[][] prefixes, int first, int counted, int limit) {
    this.prefixes = prefixes;
    this.first = first;
    this.limit = limit;
    this.number = first;
    this.counted = counted;
  }

  byte[][] left() {
    return Arrays.copyOfRange(prefixes, first, prefixes.length);
  }

  byte[] start() {
    return prefixes[first];
  }

  byte[] end() {
    byte[] last = prefixes[prefixes.length - 1];
    byte[] end = Arrays.copyOf(last, last.length + 1);
    end[last.length] = END[0];
    return end;
  }

  /** Goes on to the prefix of a row; whether there is still room for it. */
  boolean take(byte[] row) {
    while (PrefixFilter.isBeyond(row, 0, row.length, prefixes[number])) {
      number++;
      counted = 0;
    }
    if (counted >= limit) {
      return false;
    }
    counted++;
    return true;
  }

  int number() {
    return number;
  }

  int counted() {
    return counted;
  }
}

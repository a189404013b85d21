package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter.RowRange;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Many rows by their keys: scans that jump from key to key, several at once.
 *
 * <p>A region server opens and closes a scanner for every Get, also for those of one call. Here one
 * goes forward through all keys of a call, which costs it a third.
 */
final class KeyWalk {
  private static final int KEYS_IN_A_CALL = 1_000;

  private final Client client;
  private final Records records;
  private final byte[][] rows;
  private final long until;
  private final int[] order;
  private final Result[] found;

  KeyWalk(Client client, Records records, byte[][] rows, long until) {
    this.client = client;
    this.records = records;
    this.rows = rows;
    this.until = until;
    this.order =
        IntStream.range(0, rows.length)
            .boxed()
            .sorted(Comparator.comparing(number -> rows[number], Bytes.BYTES_COMPARATOR))
            .mapToInt(Integer::intValue)
            .toArray();
    this.found = new Result[rows.length];
  }

  /** What is there, in the order of the keys as they were given; null where there is nothing. */
  Result[] find() throws IOException {
    List<Future<Integer>> calls = new ArrayList<>();
    for (int start = 0; start < rows.length; start += KEYS_IN_A_CALL) {
      int from = start;
      int to = Math.min(rows.length, start + KEYS_IN_A_CALL);
      calls.add(client.submit(() -> walk(from, to)));
    }
    Client.await(calls);
    return found;
  }

  /** A key may be asked for twice; each call fills places of its own. */
  private int walk(int from, int to) throws IOException {
    int at = from;
    try (Table table = client.table(records.name);
        ResultScanner results = table.getScanner(scan(from, to))) {
      for (Result result; (result = results.next()) != null; ) {
        byte[] row = result.getRow();
        while (Bytes.compareTo(key(at), row) < 0) {
          at++;
        }
        for (; at < to && Bytes.equals(key(at), row); at++) {
          found[order[at]] = result;
        }
      }
    }
    return at;
  }

  private Scan scan(int from, int to) throws IOException {
    List<RowRange> keys = new ArrayList<>(to - from);
    for (int at = from; at < to; at++) {
      keys.add(new RowRange(key(at), true, key(at), true));
    }
    return new Scan()
        .addFamily(records.family)
        .setTimeRange(0, until)
        .withStartRow(key(from), true)
        .withStopRow(key(to - 1), true)
        .setFilter(new MultiRowRangeFilter(keys))
        .setLimit(to - from)
        .setCaching(to - from);
  }

  private byte[] key(int at) {
    return rows[order[at]];
  }
}

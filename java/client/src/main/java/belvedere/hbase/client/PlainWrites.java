package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBase's client as anybody would use it, for the benchmark: what an epoch wrote, put again into
 * empty copies of its tables, and a writer of a user's table.
 */
public final class PlainWrites {
  private static final int ROWS_IN_A_CALL = 2_000;

  private final Connection connection;
  private final List<Batch> batches = new ArrayList<>();
  private int rows;

  private record Batch(TableName table, List<Put> puts) {}

  /** The servers of ZooKeeper, as `host:2181`. */
  public PlainWrites(String quorum) throws IOException {
    connection = Connections.of(quorum);
  }

  /** An empty table that is divided and set up as another one. */
  public void copy(String table, String copy) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      if (!admin.tableExists(TableName.valueOf(copy))) {
        admin.cloneTableSchema(TableName.valueOf(table), TableName.valueOf(copy), true);
      }
    }
  }

  /** Takes the cells that an epoch wrote into a table, as batches for its copy; how many rows. */
  public int take(String table, String copy, long epoch) throws IOException {
    Scan scan = new Scan().setTimeRange(epoch, epoch + 1).setCaching(ROWS_IN_A_CALL);
    int before = rows;
    List<Put> puts = new ArrayList<>();
    try (Table source = connection.getTable(TableName.valueOf(table));
        ResultScanner results = source.getScanner(scan)) {
      for (Result result; (result = results.next()) != null; rows++) {
        puts.add(put(result));
        if (puts.size() == ROWS_IN_A_CALL) {
          batches.add(new Batch(TableName.valueOf(copy), puts));
          puts = new ArrayList<>();
        }
      }
    }
    if (!puts.isEmpty()) {
      batches.add(new Batch(TableName.valueOf(copy), puts));
    }
    return rows - before;
  }

  private static Put put(Result result) throws IOException {
    Put put = new Put(result.getRow());
    for (Cell cell : result.rawCells()) {
      put.add(cell);
    }
    return put;
  }

  /** Puts all batches with so many threads, and forgets them; seconds. */
  public double write(int threads) throws IOException {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      long began = System.nanoTime();
      List<Future<Integer>> calls = new ArrayList<>();
      for (Batch batch : batches) {
        calls.add(pool.submit(() -> send(batch)));
      }
      Client.await(calls);
      return (System.nanoTime() - began) / 1e9;
    } finally {
      pool.shutdown();
      batches.clear();
    }
  }

  private int send(Batch batch) throws IOException {
    try (Table table = connection.getTable(batch.table)) {
      table.put(batch.puts);
    }
    return batch.puts.size();
  }

  /**
   * Puts `count` rows, `inACall` with each call, into columns of one family. Row i has the key
   * `prefix` and i; returns the seconds of every call.
   */
  public double[] puts(
      String name, String family, String[] columns, String prefix, int count, int inACall)
      throws IOException {
    double[] seconds = new double[(count + inACall - 1) / inACall];
    try (Table table = connection.getTable(TableName.valueOf(name))) {
      for (int call = 0; call < seconds.length; call++) {
        List<Put> puts = new ArrayList<>();
        for (int i = call * inACall; i < Math.min(count, (call + 1) * inACall); i++) {
          puts.add(row(family, columns, prefix, i));
        }
        long began = System.nanoTime();
        table.put(puts);
        seconds[call] = (System.nanoTime() - began) / 1e9;
      }
    }
    return seconds;
  }

  /** The first column is a text, the second a number; as the workload has them. */
  private static Put row(String family, String[] columns, String prefix, int i) {
    byte[] in = Bytes.toBytes(family);
    return new Put(Bytes.toBytes(prefix + String.format("%07d", i)))
        .addColumn(in, Bytes.toBytes(columns[0]), Bytes.toBytes(String.format("x%06d", i % 1000)))
        .addColumn(in, Bytes.toBytes(columns[1]), Bytes.toBytes((long) (i % 10_000)));
  }
}

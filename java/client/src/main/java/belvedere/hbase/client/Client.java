package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Table;

/** A connection to a cluster, and a few threads that keep several calls under way at once. */
public final class Client implements AutoCloseable {
  private static final int CALLS_AT_ONCE = 6;

  private final Connection connection;
  private final ExecutorService calls;

  /** Settings are names of HBase's configuration and their values, in turn. */
  public Client(String[] settings) throws IOException {
    connection = ConnectionFactory.createConnection(configuration(settings));
    calls =
        Executors.newFixedThreadPool(
            CALLS_AT_ONCE,
            work -> {
              Thread thread = new Thread(work, "belvedere-hbase-call");
              thread.setDaemon(true);
              return thread;
            });
  }

  private static Configuration configuration(String[] settings) {
    Configuration configuration = HBaseConfiguration.create();
    for (int i = 0; i < settings.length; i += 2) {
      configuration.set(settings[i], settings[i + 1]);
    }
    return configuration;
  }

  /**
   * Whether ZooKeeper knows where HBase is. A connection of its own, with little patience: one for
   * work would look for HBase for minutes, because it must outlast the death of a server.
   */
  public static void find(String[] settings) throws IOException {
    try (Connection brief = ConnectionFactory.createConnection(configuration(settings));
        RegionLocator regions = brief.getRegionLocator(TableName.META_TABLE_NAME)) {
      regions.getRegionLocation(HConstants.EMPTY_START_ROW, true);
    }
  }

  public Tables tables() {
    return new Tables(connection);
  }

  public Cells cells(String table) {
    return new Cells(this, TableName.valueOf(table));
  }

  /** The records of a state table: those rows of an HBase table that begin with a slot and `id`. */
  public Records records(String table, byte[] id, String family, String[] qualifiers) {
    return new Records(this, TableName.valueOf(table), id, family, qualifiers);
  }

  /** Some columns of a table that is the user's. */
  public Rows rows(String table, byte[] places) {
    return new Rows(this, TableName.valueOf(table), places);
  }

  public Commit commit(int slot, long epoch) {
    return new Commit(this, slot, epoch);
  }

  Table table(TableName name) throws IOException {
    return connection.getTable(name);
  }

  <T> Future<T> submit(Callable<T> call) {
    return calls.submit(call);
  }

  /** Waits for all calls, also after one has failed: none is under way when this returns. */
  static <T> List<T> await(List<Future<T>> futures) throws IOException {
    List<T> answers = new ArrayList<>(futures.size());
    IOException failure = null;
    for (Future<T> future : futures) {
      try {
        answers.add(future.get());
      } catch (ExecutionException error) {
        failure = join(failure, error.getCause());
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new IOException(error);
      }
    }
    if (failure != null) {
      throw failure;
    }
    return answers;
  }

  private static IOException join(IOException first, Throwable next) {
    IOException wrapped = next instanceof IOException known ? known : new IOException(next);
    if (first == null) {
      return wrapped;
    }
    first.addSuppressed(wrapped);
    return first;
  }

  @Override
  public void close() throws IOException {
    calls.shutdown();
    connection.close();
  }
}

package belvedere.hbase.client;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.shaded.org.apache.zookeeper.KeeperException.NoNodeException;
import org.apache.hadoop.hbase.shaded.org.apache.zookeeper.data.Stat;
import org.apache.hadoop.hbase.zookeeper.ReadOnlyZKClient;
import org.apache.hbase.thirdparty.io.netty.util.HashedWheelTimer;

/**
 * Queues of servers that have ended, as HBase 2 keeps them in ZooKeeper: under the dead server
 * until another one claims it, then under that one with the dead one's name behind the peer's.
 */
final class DeadQueues {
  private static final HashedWheelTimer TIMER =
      new HashedWheelTimer(DeadQueues::daemon); // one for all: it is a thread
  private final Configuration configuration;
  private final String root;
  private final String peer;

  DeadQueues(Connection connection, String peer) {
    this.configuration = connection.getConfiguration();
    this.peer = peer;
    String base = configuration.get("zookeeper.znode.parent", "/hbase");
    String replication = configuration.get("zookeeper.znode.replication", "replication");
    String servers = configuration.get("zookeeper.znode.replication.rs", "rs");
    root = base + "/" + replication + "/" + servers;
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "belvedere-zookeeper");
    thread.setDaemon(true);
    return thread;
  }

  /** All at one moment: claiming a queue changes the number of changes below the root. */
  List<String> list(List<String> live) throws IOException {
    try (ReadOnlyZKClient zookeeper =
        new ReadOnlyZKClient(configuration, TIMER)) {
      while (true) {
        int before = changes(zookeeper);
        List<String> found = read(zookeeper, live);
        if (changes(zookeeper) == before) {
          return found;
        }
      }
    }
  }

  private int changes(ReadOnlyZKClient zookeeper) throws IOException {
    Stat stat = answer(zookeeper.exists(root));
    return stat == null ? -1 : stat.getCversion();
  }

  private List<String> read(ReadOnlyZKClient zookeeper, List<String> live) throws IOException {
    List<String> found = new ArrayList<>();
    for (String server : children(zookeeper, root)) {
      for (String queue : children(zookeeper, root + "/" + server)) {
        boolean orphaned = queue.equals(peer) && !live.contains(server);
        if (orphaned || queue.startsWith(peer + "-")) {
          found.add(server + "/" + queue);
        }
      }
    }
    return found;
  }

  private static List<String> children(ReadOnlyZKClient zookeeper, String path)
      throws IOException {
    List<String> found = answer(zookeeper.list(path));
    return found == null ? List.of() : found;
  }

  /** Null if there is no such node. */
  private static <T> T answer(CompletableFuture<T> future) throws IOException {
    try {
      return future.get();
    } catch (ExecutionException error) {
      if (error.getCause() instanceof NoNodeException) {
        return null;
      }
      throw new IOException(error.getCause());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException();
    }
  }
}

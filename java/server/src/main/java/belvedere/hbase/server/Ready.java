package belvedere.hbase.server;

import java.util.EnumSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.ClusterMetrics.Option;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/**
 * Waits until a cluster works: a master that has finished starting, enough region servers, and the
 * table of regions in its place. Arguments: region servers, seconds.
 */
public final class Ready {
  private static final EnumSet<Option> NEEDED =
      EnumSet.of(Option.LIVE_SERVERS, Option.MASTER, Option.BACKUP_MASTERS);

  private Ready() {}

  public static void main(String[] arguments) throws Exception {
    int servers = Integer.parseInt(arguments[0]);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
    Configuration configuration = HBaseConfiguration.create();
    String missing = "no answer from ZooKeeper or the master";
    while (System.nanoTime() < deadline) {
      try (Connection connection = ConnectionFactory.createConnection(configuration);
          Admin admin = connection.getAdmin()) {
        missing = waitFor(admin, servers, deadline);
        if (missing == null) {
          return;
        }
      } catch (java.io.IOException error) {
        missing = error.toString();
      }
    }
    System.err.println(missing);
    System.exit(1);
  }

  /** What is missing when the time is over; null if nothing. */
  private static String waitFor(Admin admin, int servers, long deadline)
      throws java.io.IOException, InterruptedException {
    String missing = "no time";
    while (System.nanoTime() < deadline) {
      ClusterMetrics seen = admin.getClusterMetrics(NEEDED);
      int live = seen.getLiveServerMetrics().size();
      if (live < servers) {
        missing = live + " of " + servers + " region servers are there";
      } else if (!admin.isTableAvailable(TableName.META_TABLE_NAME)) {
        missing = "the table of regions is not assigned";
      } else {
        admin.listNamespaces(); // refused until the master has finished starting
        return null;
      }
      TimeUnit.MILLISECONDS.sleep(100);
    }
    return missing;
  }
}

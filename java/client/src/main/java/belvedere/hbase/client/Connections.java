package belvedere.hbase.client;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** One connection for each cluster, for the life of the process: they are heavy, and share well. */
public final class Connections {
  private static final Map<String, Connection> OPEN = new HashMap<>();

  private Connections() {}

  /** A quorum is hosts of ZooKeeper with their port: `host:2181` or `one:2181,two:2181`. */
  public static synchronized Connection of(String quorum) throws IOException {
    Connection known = OPEN.get(quorum);
    if (known == null || known.isClosed()) {
      known = ConnectionFactory.createConnection(configuration(quorum));
      OPEN.put(quorum, known);
    }
    return known;
  }

  static Configuration configuration(String quorum) {
    Configuration configuration = HBaseConfiguration.create();
    configuration.set(HConstants.ZOOKEEPER_QUORUM, quorum);
    int colon = quorum.lastIndexOf(':');
    if (colon >= 0) {
      configuration.set(HConstants.ZOOKEEPER_CLIENT_PORT, quorum.substring(colon + 1));
    }
    return configuration;
  }
}

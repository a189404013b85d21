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

  /**
   * A quorum is hosts of ZooKeeper with their port, `host:2181` or `one:2181,two:2181`, and behind
   * a slash HBase's place there if it is another than usual: `host:2181/other`.
   */
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
    int slash = quorum.indexOf('/');
    String servers = slash < 0 ? quorum : quorum.substring(0, slash);
    configuration.set(HConstants.ZOOKEEPER_QUORUM, servers);
    int colon = servers.lastIndexOf(':');
    if (colon >= 0) {
      configuration.set(HConstants.ZOOKEEPER_CLIENT_PORT, servers.substring(colon + 1));
    }
    if (slash >= 0) {
      configuration.set(HConstants.ZOOKEEPER_ZNODE_PARENT, quorum.substring(slash));
    }
    return configuration;
  }
}

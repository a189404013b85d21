package belvedere.hbase.client;

import belvedere.hbase.server.CaptureSettings;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfigBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerDescription;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The peer that captures changes, and the tables it captures. It is serial: HBase delivers the
 * edits of a region in their order, also when the region moves, splits or is recovered.
 */
public final class Capture {
  private static final EnumSet<ClusterMetrics.Option> DEAD =
      EnumSet.of(ClusterMetrics.Option.DEAD_SERVERS);
  private final Connection connection;
  private final String namespace;
  private final String peer;

  public Capture(String quorum, String namespace) throws IOException {
    this.connection = Connections.of(quorum);
    this.namespace = namespace;
    this.peer = peerOf(namespace);
  }

  /** No `-` in it: HBase divides the names of queues there. */
  static String peerOf(String namespace) {
    return "belvedere_" + namespace;
  }

  public String peer() {
    return peer;
  }

  /** Everything that capture needs in the cluster; what is there stays. Settings are in turn. */
  public void install(String directory, String[] settings) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      createNamespace(admin);
      new Marks(connection, namespace).create(admin);
      if (find(admin) == null) {
        admin.addReplicationPeer(peer, configuration(directory, settings), true);
      }
    }
  }

  private void createNamespace(Admin admin) throws IOException {
    try {
      admin.createNamespace(NamespaceDescriptor.create(namespace).build());
    } catch (NamespaceExistException there) {
      return;
    }
  }

  private ReplicationPeerConfig configuration(String directory, String[] settings) {
    Map<TableName, List<String>> tables = new HashMap<>();
    TableName marks = Marks.table(namespace);
    tables.put(marks, new ArrayList<>());
    ReplicationPeerConfigBuilder builder =
        ReplicationPeerConfig.newBuilder()
            .setReplicationEndpointImpl(CaptureSettings.ENDPOINT)
            .setSerial(true)
            .setReplicateAllUserTables(false)
            .setTableCFsMap(tables)
            .putConfiguration(CaptureSettings.DIRECTORY, directory)
            .putConfiguration(CaptureSettings.MARKS, marks.getNameAsString());
    for (int i = 0; i < settings.length; i += 2) {
      builder.putConfiguration(settings[i], settings[i + 1]);
    }
    return builder.build();
  }

  /** Remove the peer: HBase keeps no log for it any more. Tables stay as they are. */
  public void uninstall() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      if (find(admin) != null) {
        admin.removeReplicationPeer(peer);
      }
    }
  }

  /** "", "enabled" or "disabled". */
  public String state() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      ReplicationPeerDescription found = find(admin);
      return found == null ? "" : found.isEnabled() ? "enabled" : "disabled";
    }
  }

  /** Where it captures to; "" if there is no peer. */
  public String directory() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      ReplicationPeerDescription found = find(admin);
      return found == null
          ? ""
          : found.getPeerConfig().getConfiguration().get(CaptureSettings.DIRECTORY);
    }
  }

  public void enable() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.enableReplicationPeer(peer);
    }
  }

  /** HBase keeps its log until the peer is enabled again. */
  public void disable() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.disableReplicationPeer(peer);
    }
  }

  private ReplicationPeerDescription find(Admin admin) throws IOException {
    for (ReplicationPeerDescription each : admin.listReplicationPeers()) {
      if (each.getPeerId().equals(peer)) {
        return each;
      }
    }
    return null;
  }

  /** Capture a table too, if it is not captured yet. */
  public void add(String table) throws IOException {
    change(TableName.valueOf(table), true);
  }

  public void remove(String table) throws IOException {
    change(TableName.valueOf(table), false);
  }

  private void change(TableName table, boolean captured) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      ReplicationPeerConfig old = admin.getReplicationPeerConfig(peer);
      Map<TableName, List<String>> tables = new HashMap<>(old.getTableCFsMap());
      if (tables.containsKey(table) == captured) {
        return;
      }
      if (captured) {
        tables.put(table, new ArrayList<>());
      } else {
        tables.remove(table);
      }
      ReplicationPeerConfig changed =
          ReplicationPeerConfig.newBuilder(old).setTableCFsMap(tables).build();
      update(admin, changed);
    }
  }

  /**
   * HBase 2.6 makes the queues of a peer that changes anew, and a region server ends itself if it
   * notes meanwhile how far an old one has come. So nothing is delivered while the peer changes.
   */
  private void update(Admin admin, ReplicationPeerConfig changed) throws IOException {
    ReplicationPeerDescription known = find(admin);
    boolean pauses = known != null && known.isEnabled();
    if (pauses) {
      admin.disableReplicationPeer(peer);
    }
    try {
      rollLogs(admin);
      admin.updateReplicationPeerConfig(peer, changed);
    } finally {
      if (pauses) {
        admin.enableReplicationPeer(peer);
      }
    }
  }

  /** A peer that changes is delivered again from the beginning of the servers' newest logs. */
  private static void rollLogs(Admin admin) throws IOException {
    for (ServerName server : admin.getRegionServers()) {
      try {
        admin.rollWALWriter(server);
      } catch (IOException starting) {
        continue; // it starts or ends just now: more comes again, and is told by sequence ids
      }
    }
  }

  /** The tables that are captured, without those of our own. */
  public String[] tables() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      List<String> names = new ArrayList<>();
      for (TableName each : admin.getReplicationPeerConfig(peer).getTableCFsMap().keySet()) {
        if (!each.equals(Marks.table(namespace))) {
          names.add(each.getNameAsString());
        }
      }
      return names.toArray(new String[0]);
    }
  }

  /** Of every family: name, time to live, least versions, scope, versions. Null: no such table. */
  public String[][] families(String table) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      List<String[]> families = new ArrayList<>();
      for (ColumnFamilyDescriptor each :
          admin.getDescriptor(TableName.valueOf(table)).getColumnFamilies()) {
        int life = each.getTimeToLive();
        families.add(
            new String[] {
              each.getNameAsString(),
              Integer.toString(life == HConstants.FOREVER ? 0 : life),
              Integer.toString(each.getMinVersions()),
              Integer.toString(each.getScope()),
              Integer.toString(each.getMaxVersions())
            });
      }
      return families.toArray(new String[0][]);
    } catch (TableNotFoundException missing) {
      return null;
    }
  }

  /** Let replication see these families; reopens the table's regions. */
  public void setScope(String table, String[] families) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      TableDescriptor old = admin.getDescriptor(TableName.valueOf(table));
      TableDescriptorBuilder changed = TableDescriptorBuilder.newBuilder(old);
      for (String family : families) {
        changed.modifyColumnFamily(
            ColumnFamilyDescriptorBuilder.newBuilder(old.getColumnFamily(Bytes.toBytes(family)))
                .setScope(HConstants.REPLICATION_SCOPE_GLOBAL)
                .build());
      }
      admin.modifyTable(changed.build());
    }
  }

  /** Servers that have ended and that the master still remembers. */
  public String[] deadServers() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      List<String> names = new ArrayList<>();
      for (ServerName each : admin.getClusterMetrics(DEAD).getDeadServerNames()) {
        names.add(each.getServerName());
      }
      return names.toArray(new String[0]);
    }
  }

  /** For every region of a table the server that has it, "" if none has. Null: no such table. */
  public String[] places(String table) throws IOException {
    TableName name = TableName.valueOf(table);
    try (Admin admin = connection.getAdmin();
        RegionLocator locator = connection.getRegionLocator(name)) {
      if (!admin.tableExists(name)) {
        return null;
      }
      locator.clearRegionLocationCache();
      List<String> places = new ArrayList<>();
      for (HRegionLocation each : locator.getAllRegionLocations()) {
        ServerName server = each.getServerName();
        places.add(server == null ? "" : server.getServerName());
      }
      return places.toArray(new String[0]);
    }
  }

  /** The first rows of a table's regions: where a scan can be divided. */
  public byte[][] starts(String table) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      List<byte[]> starts = new ArrayList<>();
      for (RegionInfo each : admin.getRegions(TableName.valueOf(table))) {
        if (!each.isOffline() && !each.isSplit()) {
          starts.add(each.getStartKey());
        }
      }
      return starts.toArray(new byte[0][]);
    }
  }
}

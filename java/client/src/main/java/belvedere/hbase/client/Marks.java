package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Marker rows, which travel through the log of every region server: what was acknowledged before a
 * marker was put has arrived when the marker has.
 *
 * <p>A marker is the next number of its row, counted by HBase. So markers of several processes need
 * nothing of each other, and a later one stands for all before it.
 */
public final class Marks {
  private static final byte[] FAMILY = Bytes.toBytes("m");
  private static final byte[] NUMBER = Bytes.toBytes("n");
  private static final int FEWEST = 8;
  private static final int SPACE = 1 << 16; // rows are two bytes

  private final Connection connection;
  private final TableName table;
  private final DeadQueues queues;

  public Marks(String quorum, String namespace) throws IOException {
    this(Connections.of(quorum), namespace);
  }

  Marks(Connection connection, String namespace) {
    this.connection = connection;
    this.table = table(namespace);
    this.queues = new DeadQueues(connection, Capture.peerOf(namespace));
  }

  static TableName table(String namespace) {
    return TableName.valueOf(namespace, "marks");
  }

  void create(Admin admin) throws IOException {
    if (admin.tableExists(table)) {
      return;
    }
    int regions = Math.max(FEWEST, 2 * admin.getRegionServers().size());
    byte[][] splits = new byte[regions - 1][];
    for (int i = 1; i < regions; i++) {
      splits[i - 1] = row(SPACE / regions * i);
    }
    try {
      admin.createTable(
          TableDescriptorBuilder.newBuilder(table)
              .setColumnFamily(
                  ColumnFamilyDescriptorBuilder.newBuilder(FAMILY)
                      .setScope(HConstants.REPLICATION_SCOPE_GLOBAL)
                      .build())
              .build(),
          splits);
    } catch (TableExistsException other) {
      return; // somebody else has made it
    }
  }

  private static byte[] row(int number) {
    return new byte[] {(byte) (number >> 8), (byte) number};
  }

  public String[] liveServers() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      List<String> names = new ArrayList<>();
      for (ServerName each : admin.getRegionServers()) {
        names.add(each.getServerName());
      }
      Collections.sort(names);
      return names.toArray(new String[0]);
    }
  }

  /** Servers that have ended, with a queue of ours that is not delivered yet. */
  public String[] deadQueues() throws IOException {
    List<String> live = List.of(liveServers());
    return queues.list(live).toArray(new String[0]);
  }

  /**
   * For each server a row in a region that it has, after moving regions to servers without one;
   * null for a server that is gone meanwhile.
   */
  public byte[][] place(String[] servers) throws IOException {
    try (Admin admin = connection.getAdmin();
        RegionLocator locator = connection.getRegionLocator(table)) {
      Map<String, List<RegionInfo>> placed = regionsByServer(locator);
      byte[][] rows = new byte[servers.length][];
      for (int i = 0; i < servers.length; i++) {
        List<RegionInfo> own = placed.get(servers[i]);
        RegionInfo region = own != null ? own.get(0) : move(admin, placed, servers, servers[i]);
        rows[i] = region == null ? null : rowOf(region);
      }
      return rows;
    }
  }

  private static Map<String, List<RegionInfo>> regionsByServer(RegionLocator locator)
      throws IOException {
    locator.clearRegionLocationCache();
    Map<String, List<RegionInfo>> placed = new HashMap<>();
    for (HRegionLocation each : locator.getAllRegionLocations()) {
      if (each.getServerName() != null) {
        String server = each.getServerName().getServerName();
        placed.computeIfAbsent(server, name -> new ArrayList<>()).add(each.getRegion());
      }
    }
    return placed;
  }

  /** Move a region to a server, from one that can do without it. */
  private RegionInfo move(
      Admin admin, Map<String, List<RegionInfo>> placed, String[] servers, String server)
      throws IOException {
    if (!List.of(liveServers()).contains(server)) {
      return null;
    }
    RegionInfo region = takeSpare(placed, List.of(servers));
    if (region == null) {
      divide(admin, placed);
      return null; // asked again, there is one
    }
    try {
      admin.move(region.getEncodedNameAsBytes(), ServerName.valueOf(server));
    } catch (IOException refused) {
      if (List.of(liveServers()).contains(server)) {
        throw refused;
      }
      return null;
    }
    placed.computeIfAbsent(server, name -> new ArrayList<>()).add(region);
    return region;
  }

  private static RegionInfo takeSpare(
      Map<String, List<RegionInfo>> placed, List<String> servers) {
    for (Map.Entry<String, List<RegionInfo>> each : placed.entrySet()) {
      boolean needsOne = servers.contains(each.getKey());
      List<RegionInfo> regions = each.getValue();
      if (regions.size() > (needsOne ? 1 : 0)) {
        return regions.remove(regions.size() - 1);
      }
    }
    return null;
  }

  /** More servers than regions: make two of one. */
  private static void divide(Admin admin, Map<String, List<RegionInfo>> placed)
      throws IOException {
    RegionInfo largest = null;
    for (List<RegionInfo> regions : placed.values()) {
      for (RegionInfo each : regions) {
        largest = largest == null || width(each) > width(largest) ? each : largest;
      }
    }
    if (largest == null || width(largest) < 2) {
      throw new IOException("no region of the table of marks can be divided");
    }
    byte[] middle = row(number(largest.getStartKey(), 0) + width(largest) / 2);
    try {
      admin.splitRegionAsync(largest.getRegionName(), middle).get(60, TimeUnit.SECONDS);
    } catch (ExecutionException | TimeoutException error) {
      throw new IOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException(error);
    }
  }

  private static int width(RegionInfo region) {
    return number(region.getEndKey(), SPACE) - number(region.getStartKey(), 0);
  }

  private static int number(byte[] row, int ifOpen) {
    return row.length == 0 ? ifOpen : (row[0] & 0xff) << 8 | row[1] & 0xff;
  }

  private static byte[] rowOf(RegionInfo region) {
    return row(number(region.getStartKey(), 0));
  }

  /** Put a marker; its number. */
  public long put(byte[] row) throws IOException {
    Increment next = new Increment(row).addColumn(FAMILY, NUMBER, 1);
    try (Table to = connection.getTable(table)) {
      return Bytes.toLong(to.increment(next).getValue(FAMILY, NUMBER));
    }
  }
}

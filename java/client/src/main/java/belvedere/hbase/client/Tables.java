package belvedere.hbase.client;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Making and removing tables. Everything can be repeated, also after a crash in the middle. */
public final class Tables {
  private static final int ALL = Integer.MAX_VALUE;
  private static final String FENCE =
      "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";
  private static final String BY_PREFIX =
      "org.apache.hadoop.hbase.regionserver.KeyPrefixRegionSplitPolicy";

  private final Connection connection;

  Tables(Connection connection) {
    this.connection = connection;
  }

  public boolean hasNamespace(String namespace) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.getNamespaceDescriptor(namespace);
      return true;
    } catch (NamespaceNotFoundException missing) {
      return false;
    }
  }

  public void createNamespace(String namespace) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.createNamespace(NamespaceDescriptor.create(namespace).build());
    } catch (NamespaceExistException other) {
      return; // somebody else has made it
    }
  }

  public boolean exists(String table) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      return admin.tableExists(TableName.valueOf(table));
    }
  }

  public int regionServers() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      return admin.getRegionServers().size();
    }
  }

  public String[] list(String namespace) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      TableName[] names = admin.listTableNamesByNamespace(namespace);
      String[] found = new String[names.length];
      for (int i = 0; i < names.length; i++) {
        found[i] = names[i].getQualifierAsString();
      }
      return found;
    }
  }

  /** A table of plain rows; families and how many versions they keep, in turn. */
  public void create(String table, String[] families, int[] versions) throws IOException {
    TableDescriptorBuilder descriptor = TableDescriptorBuilder.newBuilder(TableName.valueOf(table));
    for (int i = 0; i < families.length; i++) {
      descriptor.setColumnFamily(family(families[i], versions[i]));
    }
    create(descriptor, null);
  }

  /**
   * A table of slots. A slot is never divided, because a fenced call reaches one region only, and
   * no version is dropped by count or age.
   */
  public void createState(String table, String family, int slots, int regions) throws IOException {
    TableDescriptorBuilder descriptor =
        TableDescriptorBuilder.newBuilder(TableName.valueOf(table))
            .setColumnFamily(family(family, ALL))
            .setColumnFamily(family(Bytes.toString(Records.FLOORS), ALL))
            .setRegionSplitPolicyClassName(BY_PREFIX)
            .setValue("KeyPrefixRegionSplitPolicy.prefix_length", "1")
            .setCoprocessor(FENCE);
    create(descriptor, splits(slots, Math.min(slots, regions)));
  }

  private static ColumnFamilyDescriptor family(String name, int versions) {
    return ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name))
        .setMaxVersions(versions)
        .setTimeToLive(HConstants.FOREVER)
        .setScope(HConstants.REPLICATION_SCOPE_LOCAL)
        .build();
  }

  private static byte[][] splits(int slots, int regions) {
    byte[][] splits = new byte[regions - 1][];
    for (int i = 1; i < regions; i++) {
      splits[i - 1] = new byte[] {(byte) (i * slots / regions)};
    }
    return splits.length == 0 ? null : splits;
  }

  private void create(TableDescriptorBuilder descriptor, byte[][] splits) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      admin.createTable(descriptor.build(), splits);
    } catch (TableExistsException other) {
      await(descriptor.build().getTableName());
    }
  }

  /** Somebody else makes the table: it can be used when it is there and available. */
  private void await(TableName table) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      waitFor(() -> admin.isTableAvailable(table), 60, table + " is not available");
    }
  }

  public void delete(String table) throws IOException {
    TableName name = TableName.valueOf(table);
    try (Admin admin = connection.getAdmin()) {
      try {
        admin.disableTable(name);
      } catch (TableNotEnabledException other) {
        admin.deleteTable(name); // a crash has left it disabled
        return;
      }
      admin.deleteTable(name);
    } catch (TableNotFoundException gone) {
      return; // what is wanted
    }
  }

  public void deleteNamespace(String namespace) throws IOException {
    for (String table : list(namespace)) {
      delete(namespace + ":" + table);
    }
    try (Admin admin = connection.getAdmin()) {
      admin.deleteNamespace(namespace);
    }
  }

  /** Writes memory to files and compacts them to one, which removes what delete markers hide. */
  public void compact(String table, int seconds) throws IOException {
    TableName name = TableName.valueOf(table);
    try (Admin admin = connection.getAdmin()) {
      admin.flush(name);
      admin.majorCompact(name); // region servers count it as under way before they answer
      waitFor(
          () -> admin.getCompactionState(name) == CompactionState.NONE,
          seconds,
          table + " is still being compacted");
    }
  }

  private interface Condition {
    boolean holds() throws IOException;
  }

  private static void waitFor(Condition condition, int seconds, String failure)
      throws IOException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new IOException(failure + " after " + seconds + " s");
      }
      try {
        TimeUnit.MILLISECONDS.sleep(50);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new IOException(error);
      }
    }
  }
}

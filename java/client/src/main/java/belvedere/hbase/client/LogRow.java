package belvedere.hbase.client;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * One row that processes change one after the other: a version, and cells whose timestamp is the
 * version that wrote them. Who knows version n reads only what came later.
 */
public final class LogRow {
  private static final byte[] ROW = Bytes.toBytes("log");
  private static final byte[] CELLS = Bytes.toBytes("l");
  private static final byte[] VERSIONS = Bytes.toBytes("v");
  private static final byte[] VERSION = Bytes.toBytes("v");
  // A change whose answer was lost is looked for at its version: by then it is not this old.
  private static final long KEPT_VERSIONS = 1000;
  private static final long RETRY_MILLIS = 100;
  private static final long GIVE_UP_MILLIS = 120_000;

  private final Connection connection;
  private final TableName name;

  public LogRow(String quorum, String table) throws IOException {
    connection = Connections.of(quorum);
    name = TableName.valueOf(table);
  }

  public void create() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      if (admin.tableExists(name)) {
        return;
      }
      admin.createTable(
          TableDescriptorBuilder.newBuilder(name)
              .setColumnFamily(family(CELLS, 1))
              .setColumnFamily(family(VERSIONS, Integer.MAX_VALUE))
              .build());
    } catch (TableExistsException other) {
      return; // somebody else has made it
    }
  }

  private static ColumnFamilyDescriptor family(byte[] family, int versions) {
    return ColumnFamilyDescriptorBuilder.newBuilder(family)
        .setMaxVersions(versions)
        .setScope(HConstants.REPLICATION_SCOPE_LOCAL)
        .build();
  }

  /**
   * What was written after a version, as of one moment: i64 version and its id (both 0 and empty if
   * nothing was), then the cells, each qualifier and value. Texts have their size, i32, before
   * them.
   */
  public byte[] read(long after) throws IOException {
    Get get = new Get(ROW).readVersions(1).setTimeRange(after + 1, Long.MAX_VALUE);
    try (Table table = connection.getTable(name)) {
      Result result = table.get(get);
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      Cell version = result.getColumnLatestCell(VERSIONS, VERSION);
      out.writeLong(version == null ? 0 : version.getTimestamp());
      text(out, version == null ? new byte[0] : CellUtil.cloneValue(version));
      for (Cell cell : result.rawCells()) {
        if (CellUtil.matchingFamily(cell, CELLS)) {
          text(out, CellUtil.cloneQualifier(cell));
          text(out, CellUtil.cloneValue(cell));
        }
      }
      return bytes.toByteArray();
    }
  }

  private static void text(DataOutputStream out, byte[] text) throws IOException {
    out.writeInt(text.length);
    out.write(text);
  }

  /**
   * Take the row from `version`, which has `id`, to the next one. Changes are qualifiers and
   * values, as `read` gives them; a size of -1 instead of a value removes the cell. False: somebody
   * else was first.
   */
  public boolean change(long version, byte[] id, byte[] newId, byte[] changes) throws IOException {
    RowMutations mutations = mutations(version + 1, newId, changes);
    CheckAndMutate.Builder check = CheckAndMutate.newBuilder(ROW);
    if (version == 0) {
      check.ifNotExists(VERSIONS, VERSION);
    } else {
      check.ifEquals(VERSIONS, VERSION, id);
    }
    CheckAndMutate call = check.build(mutations);
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(GIVE_UP_MILLIS);
    while (true) {
      try (Table table = connection.getTable(name)) {
        if (table.checkAndMutate(call).isSuccess()) {
          return true;
        }
        // The client repeats a call whose answer was lost, and the repetition is refused.
        return Arrays.equals(newId, idAt(version + 1));
      } catch (IOException error) {
        Boolean applied = outcome(version + 1, newId, deadline, error);
        if (applied != null) {
          return applied;
        }
      }
    }
  }

  /** Whether a call without an answer was applied; null if neither it nor another one was. */
  private Boolean outcome(long version, byte[] newId, long deadline, IOException error)
      throws IOException {
    while (true) {
      try {
        byte[] found = idAt(version);
        return found == null ? null : Arrays.equals(newId, found);
      } catch (IOException again) {
        if (System.nanoTime() > deadline) {
          again.addSuppressed(error);
          throw again;
        }
        pause();
      }
    }
  }

  private static void pause() throws InterruptedIOException {
    try {
      TimeUnit.MILLISECONDS.sleep(RETRY_MILLIS);
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while the outcome of a change is not known");
    }
  }

  private byte[] idAt(long version) throws IOException {
    Get get = new Get(ROW).addColumn(VERSIONS, VERSION).setTimestamp(version);
    try (Table table = connection.getTable(name)) {
      return table.get(get).getValue(VERSIONS, VERSION);
    }
  }

  private static RowMutations mutations(long version, byte[] id, byte[] changes)
      throws IOException {
    Put put = new Put(ROW, version).addColumn(VERSIONS, VERSION, id);
    Delete delete = new Delete(ROW);
    ByteBuffer from = ByteBuffer.wrap(changes);
    while (from.hasRemaining()) {
      byte[] qualifier = new byte[from.getInt()];
      from.get(qualifier);
      int size = from.getInt();
      if (size < 0) {
        delete.addColumns(CELLS, qualifier, version);
      } else {
        byte[] value = new byte[size];
        from.get(value);
        put.addColumn(CELLS, qualifier, value);
      }
    }
    if (version > KEPT_VERSIONS) {
      delete.addColumn(VERSIONS, VERSION, version - KEPT_VERSIONS);
    }
    RowMutations all = new RowMutations(ROW).add((Mutation) put);
    return delete.isEmpty() ? all : all.add((Mutation) delete);
  }
}

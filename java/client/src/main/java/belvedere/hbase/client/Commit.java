package belvedere.hbase.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.ipc.CoprocessorRpcChannel;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MultiRowMutationService;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsRequest;
import org.apache.hadoop.hbase.shaded.com.google.protobuf.ServiceException;

/**
 * Writes of one slot at one epoch, in calls that the region refuses once its floor has reached the
 * epoch.
 *
 * <p>A call is small enough to be short, because it locks all its rows. Calls may be applied in any
 * order, twice, or in part: all attempts of an epoch write the same.
 */
public final class Commit {
  private static final int ROWS_IN_A_CALL = 2_000;
  private static final long BYTES_IN_A_CALL = 2 << 20;

  private final Client client;
  private final int slot;
  private final long epoch;
  private final List<Future<Boolean>> calls = new ArrayList<>();

  Commit(Client client, int slot, long epoch) {
    this.client = client;
    this.slot = slot;
    this.epoch = epoch;
  }

  /**
   * Begins to write: keys, what follows the flag in the stamp (NULL for a deleted record), cells.
   * The count goes into the row of the floor.
   */
  public void add(Records records, byte[] columns, byte[] count) {
    Columns in = Columns.read(columns);
    for (int from = 0; from < in.rows; ) {
      int start = from;
      int end = end(in, start);
      byte[] counted = start == 0 ? count : null;
      calls.add(client.submit(() -> call(records, in, start, end, counted)));
      from = end;
    }
  }

  /** Waits for all calls; false if one was refused. */
  public boolean finish() throws IOException {
    return !Client.await(calls).contains(false);
  }

  private static int end(Columns columns, int start) {
    long size = 0;
    int end = start;
    while (end < columns.rows && end - start < ROWS_IN_A_CALL) {
      for (int column = 0; column < columns.count; column++) {
        size += columns.length(column, end);
      }
      if (size > BYTES_IN_A_CALL && end > start) {
        break;
      }
      end++;
    }
    return end;
  }

  private boolean call(Records records, Columns columns, int start, int end, byte[] count)
      throws IOException {
    FencedCall call = new FencedCall(records, slot, epoch);
    if (count != null) {
      call.addCount(count);
    }
    for (int row = start; row < end; row++) {
      call.add(columns, row);
    }
    return send(records, call.build());
  }

  private boolean send(Records records, MutateRowsRequest request) throws IOException {
    try (Table table = client.table(records.name)) {
      CoprocessorRpcChannel channel = table.coprocessorService(records.floorRow(slot));
      return MultiRowMutationService.newBlockingStub(channel)
          .mutateRows(null, request)
          .getProcessed();
    } catch (ServiceException error) {
      throw error.getCause() instanceof IOException cause ? cause : new IOException(error);
    }
  }
}

package belvedere.hbase.client;

import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.Condition;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.ColumnValue;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.ColumnValue.QualifierValue;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.Durability;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.MutationType;
import org.apache.hadoop.hbase.protobuf.generated.HBaseProtos.CompareType;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsRequest;
import org.apache.hadoop.hbase.shaded.com.google.protobuf.ByteString;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A call of HBase's MultiRowMutationEndpoint that writes rows if the floor of their slot and table
 * is below their epoch. An absent floor refuses everything.
 *
 * <p>Made from bytes directly: HBase's own objects for puts would be turned into the same messages.
 */
final class FencedCall {
  private static final ByteString FLOORS = ByteString.copyFrom(Records.FLOORS);
  private static final ByteString FLOOR = ByteString.copyFrom(Bytes.toBytes("_"));
  private static final ByteString COUNT = ByteString.copyFrom(Bytes.toBytes("n"));
  private static final ByteString DELETED = ByteString.copyFrom(new byte[] {0});

  private final Records records;
  private final int slot;
  private final long epoch;
  private final ByteString family;
  private final ByteString[] qualifiers;
  private final MutateRowsRequest.Builder request = MutateRowsRequest.newBuilder();

  FencedCall(Records records, int slot, long epoch) {
    this.records = records;
    this.slot = slot;
    this.epoch = epoch;
    this.family = ByteString.copyFrom(records.family);
    this.qualifiers = new ByteString[records.qualifiers.length];
    for (int i = 0; i < qualifiers.length; i++) {
      qualifiers[i] = ByteString.copyFrom(records.qualifiers[i]);
    }
    request.addCondition(
        Condition.newBuilder()
            .setRow(ByteString.copyFrom(records.floorRow(slot)))
            .setFamily(FLOORS)
            .setQualifier(FLOOR)
            .setCompareType(CompareType.GREATER) // the epoch than the floor
            .setComparator(ProtobufUtil.toComparator(new BinaryComparator(Bytes.toBytes(epoch)))));
  }

  void addCount(byte[] count) {
    ColumnValue.Builder cells = ColumnValue.newBuilder().setFamily(FLOORS);
    cells.addQualifierValue(cell(COUNT, ByteString.copyFrom(count)));
    add(records.floorRow(slot), cells);
  }

  /** A row of columns: key, what follows the flag in the stamp, cells. */
  void add(Columns columns, int row) {
    ColumnValue.Builder cells = ColumnValue.newBuilder().setFamily(family);
    boolean isDeleted = columns.isNull(1, row);
    cells.addQualifierValue(cell(qualifiers[0], isDeleted ? DELETED : stamp(columns, row)));
    for (int column = 1; column < qualifiers.length && !isDeleted; column++) {
      if (!columns.isNull(column + 1, row)) {
        cells.addQualifierValue(cell(qualifiers[column], bytes(columns, column + 1, row)));
      }
    }
    add(records.row(slot, columns.bytes, columns.start(0, row), columns.length(0, row)), cells);
  }

  MutateRowsRequest build() {
    return request.build();
  }

  private void add(byte[] row, ColumnValue.Builder cells) {
    request.addMutationRequest(
        MutationProto.newBuilder()
            .setRow(ByteString.copyFrom(row))
            .setMutateType(MutationType.PUT)
            .setDurability(Durability.USE_DEFAULT)
            .addColumnValue(cells));
  }

  private QualifierValue.Builder cell(ByteString qualifier, ByteString value) {
    return QualifierValue.newBuilder()
        .setQualifier(qualifier)
        .setTimestamp(epoch)
        .setValue(value);
  }

  private static ByteString stamp(Columns columns, int row) {
    int length = columns.length(1, row);
    byte[] stamp = new byte[1 + length];
    stamp[0] = Records.RECORD;
    System.arraycopy(columns.bytes, columns.start(1, row), stamp, 1, length);
    return ByteString.copyFrom(stamp);
  }

  private static ByteString bytes(Columns columns, int column, int row) {
    return ByteString.copyFrom(
        columns.bytes, columns.start(column, row), columns.length(column, row));
  }
}

package belvedere.hbase.server;

import belvedere.hbase.server.Columns.Flags;
import belvedere.hbase.server.Columns.Ints;
import belvedere.hbase.server.Columns.Longs;
import belvedere.hbase.server.Columns.Texts;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.hadoop.hbase.Cell;

/**
 * What one call of replication brings, or a piece of a scan, as columns.
 *
 * <p>A head, which is all that discovery reads, and a body; each with its CRC. Numbers are
 * little-endian, columns begin at multiples of 8.
 *
 * <pre>
 * head   u32 magic, u16 version, u8 kind, u8 0, u32 size of head, u32 CRC of head (taken as 0),
 *        u64 size of body, u32 CRC of body, u32 operations, u32 cells, u32 columns,
 *        i64 first and last time, u32 regions, u32 marks, u32 files, u32 0;
 *        queue; per region: table, region, i64 lowest and highest sequence id, u8 flags;
 *        per mark: row, i64 number; per file: name, i64 length     (texts: u16 size, bytes)
 * body   per operation: i64 sequence id, i64 time, i32 region, i32 edit, row;
 *        per cell: i64 timestamp, i32 operation, i32 column, u8 type, value;
 *        per column: family, qualifier               (texts: i32 offsets, then all bytes)
 * </pre>
 *
 * <p>An operation is what one edit does to one row. Files are those that this frame comes after.
 */
public final class Frame {
  static final int MAGIC = 0x31465642; // "BVF1"
  static final short VERSION = 1;
  private static final int FIXED = 72;

  /** What a frame is there for. */
  public enum Kind {
    WAL(1),
    SCAN(2),
    MARK(3),
    END(4);

    final byte code;

    Kind(int code) {
      this.code = (byte) code;
    }
  }

  /** A region in this frame: what of it, and whether something may have happened elsewhere. */
  static final class Region {
    static final int NEW = 1;
    static final int BULK_LOAD = 2;
    final String table;
    final String name;
    final int index;
    long lowest = Long.MAX_VALUE;
    long highest = Long.MIN_VALUE;
    boolean hasGap;
    int flags;

    Region(String table, String name, int index) {
      this.table = table;
      this.name = name;
      this.index = index;
    }

    void meet(long sequence) {
      hasGap |= lowest <= highest && sequence > highest + 1;
      lowest = Math.min(lowest, sequence);
      highest = Math.max(highest, sequence);
    }
  }

  private record Mark(byte[] row, long number) {}

  private final String queue;
  private final Map<String, Region> regions = new LinkedHashMap<>();
  private final List<Mark> marks = new ArrayList<>();
  private final Map<String, Long> files = new LinkedHashMap<>();
  private final Map<ByteBuffer, Map<ByteBuffer, Integer>> columns = new HashMap<>();
  private final Map<ByteBuffer, Integer> rowsOfEdit = new HashMap<>();
  private final Longs sequences = new Longs();
  private final Longs times = new Longs();
  private final Ints regionOf = new Ints();
  private final Ints editOf = new Ints();
  private final Texts rows = new Texts();
  private final Longs timestamps = new Longs();
  private final Ints operationOf = new Ints();
  private final Ints columnOf = new Ints();
  private final Flags types = new Flags();
  private final Texts values = new Texts();
  private final Texts families = new Texts();
  private final Texts qualifiers = new Texts();
  private int columnCount;
  private int edits;
  private long firstTime = Long.MAX_VALUE;
  private long lastTime = Long.MIN_VALUE;
  private Region region;
  private long sequence;
  private long time;
  private int operation;

  public Frame(String queue) {
    this.queue = queue;
  }

  /** An edit of a region begins: cells that are added now belong to it. */
  public void edit(String table, String regionName, long sequenceId, long writeTime) {
    region = regions.get(regionName);
    if (region == null) {
      region = new Region(table, regionName, regions.size());
      regions.put(regionName, region);
    }
    region.meet(sequenceId);
    sequence = sequenceId;
    time = writeTime;
    firstTime = Math.min(firstTime, writeTime);
    lastTime = Math.max(lastTime, writeTime);
    edits++;
    operation = -1;
    rowsOfEdit.clear();
  }

  public void add(Cell cell) {
    operation = operationOf(cell);
    timestamps.add(cell.getTimestamp());
    operationOf.add(operation);
    columnOf.add(columnOf(cell));
    types.add(cell.getTypeByte());
    values.add(cell.getValueArray(), cell.getValueOffset(), cell.getValueLength());
  }

  /** A bulk load into the region of this edit: its rows are in no log. */
  void bulkLoad() {
    region.flags |= Region.BULK_LOAD;
  }

  /** A marker row of a barrier; it is no operation. */
  void mark(byte[] row, long number) {
    marks.add(new Mark(row, number));
  }

  /** Everything that another file had when this frame was written comes before it. */
  void after(String file, long length) {
    files.put(file, length);
  }

  Iterable<Region> regions() {
    return regions.values();
  }

  public int operations() {
    return sequences.count();
  }

  /** About the bytes that the cells have, to end a frame of a scan. */
  public int size() {
    return rows.length() + values.length() + 32 * timestamps.count();
  }

  boolean isEmpty() {
    return regions.isEmpty();
  }

  public byte[] encode(Kind kind) {
    byte[] names = names();
    int head = Columns.padded(FIXED + names.length);
    int body = bodySize();
    ByteBuffer to = ByteBuffer.allocate(head + body).order(ByteOrder.LITTLE_ENDIAN);
    to.position(head);
    writeBody(to);
    to.position(0);
    to.putInt(MAGIC).putShort(VERSION).put(kind.code).put((byte) 0).putInt(head).putInt(0);
    to.putLong(body).putInt(checksum(to.array(), head, body));
    to.putInt(operations()).putInt(timestamps.count()).putInt(columnCount);
    boolean timed = edits > 0;
    to.putLong(timed ? firstTime : 0).putLong(timed ? lastTime : 0);
    to.putInt(regions.size()).putInt(marks.size()).putInt(files.size()).putInt(0);
    to.put(names);
    to.putInt(12, checksum(to.array(), 0, head));
    return to.array();
  }

  private static int checksum(byte[] bytes, int offset, int size) {
    CRC32 crc = new CRC32();
    crc.update(bytes, offset, size);
    return (int) crc.getValue();
  }

  private int bodySize() {
    int perOperation = sequences.size() + times.size() + regionOf.size() + editOf.size();
    int perCell = timestamps.size() + operationOf.size() + columnOf.size() + types.size();
    int texts = rows.size() + values.size() + families.size() + qualifiers.size();
    return Math.addExact(Math.addExact(perOperation, perCell), texts);
  }

  private void writeBody(ByteBuffer to) {
    sequences.write(to);
    times.write(to);
    regionOf.write(to);
    editOf.write(to);
    rows.write(to);
    timestamps.write(to);
    operationOf.write(to);
    columnOf.write(to);
    types.write(to);
    values.write(to);
    families.write(to);
    qualifiers.write(to);
  }

  /** The part of the head whose size differs. */
  private byte[] names() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      text(out, queue);
      for (Region each : regions.values()) {
        text(out, each.table);
        text(out, each.name);
        out.writeLong(Long.reverseBytes(each.lowest));
        out.writeLong(Long.reverseBytes(each.highest));
        out.writeByte(each.flags);
      }
      for (Mark each : marks) {
        text(out, each.row);
        out.writeLong(Long.reverseBytes(each.number));
      }
      for (Map.Entry<String, Long> each : files.entrySet()) {
        text(out, each.getKey());
        out.writeLong(Long.reverseBytes(each.getValue()));
      }
    } catch (IOException error) {
      throw new IllegalStateException("memory does not fail to be written", error);
    }
    return bytes.toByteArray();
  }

  private static void text(DataOutputStream out, String text) throws IOException {
    text(out, text.getBytes(StandardCharsets.UTF_8));
  }

  private static void text(DataOutputStream out, byte[] text) throws IOException {
    out.writeShort(Short.reverseBytes((short) text.length));
    out.write(text);
  }

  /**
   * The operation that a cell belongs to. A row may come back in the same edit: two puts of one
   * batch share an edit, and they are one operation, because they have one sequence id.
   */
  private int operationOf(Cell cell) {
    byte[] array = cell.getRowArray();
    int offset = cell.getRowOffset();
    int size = cell.getRowLength();
    boolean isSame = operation >= 0 && operation == operations() - 1;
    if (isSame && rows.lastEquals(array, offset, size)) {
      return operation;
    }
    byte[] row = java.util.Arrays.copyOfRange(array, offset, offset + size);
    Integer known = rowsOfEdit.putIfAbsent(ByteBuffer.wrap(row), operations());
    return known != null ? known : begin(row);
  }

  private int begin(byte[] row) {
    sequences.add(sequence);
    times.add(time);
    regionOf.add(region.index);
    editOf.add(edits - 1);
    rows.add(row);
    return operations() - 1;
  }

  private int columnOf(Cell cell) {
    ByteBuffer family =
        ByteBuffer.wrap(cell.getFamilyArray(), cell.getFamilyOffset(), cell.getFamilyLength());
    ByteBuffer qualifier =
        ByteBuffer.wrap(
            cell.getQualifierArray(), cell.getQualifierOffset(), cell.getQualifierLength());
    Map<ByteBuffer, Integer> ofFamily = columns.get(family);
    if (ofFamily == null) {
      ofFamily = new HashMap<>();
      columns.put(ByteBuffer.wrap(copy(family)), ofFamily);
    }
    Integer known = ofFamily.get(qualifier);
    if (known == null) {
      byte[] name = copy(qualifier);
      known = columnCount++;
      ofFamily.put(ByteBuffer.wrap(name), known);
      families.add(copy(family));
      qualifiers.add(name);
    }
    return known;
  }

  private static byte[] copy(ByteBuffer from) {
    byte[] to = new byte[from.remaining()];
    from.duplicate().get(to);
    return to;
  }
}

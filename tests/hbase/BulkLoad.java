import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/** Rows as a bulk load: a table, a directory, a value for f:a, and the rows that get it. */
public final class BulkLoad {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = HBaseConfiguration.create();
    Path directory = new Path("file://" + arguments[1]);
    FileSystem files = directory.getFileSystem(configuration);
    TreeSet<String> rows = new TreeSet<>();
    for (int i = 3; i < arguments.length; i++) {
      rows.add(arguments[i]);
    }
    HFile.Writer writer =
        HFile.getWriterFactory(configuration, new CacheConfig(configuration))
            .withPath(files, new Path(directory, "f/rows"))
            .withFileContext(new HFileContextBuilder().build())
            .create();
    for (String row : rows) {
      byte[] value = Bytes.toBytes(arguments[2]);
      long now = System.currentTimeMillis();
      writer.append(
          new KeyValue(Bytes.toBytes(row), Bytes.toBytes("f"), Bytes.toBytes("a"), now, value));
    }
    writer.close();
    BulkLoadHFiles.create(configuration).bulkLoad(TableName.valueOf(arguments[0]), directory);
  }
}

package belvedere.hbase.client;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;

/** What went wrong, for Python: all errors behind an error, also those that HBase keeps aside. */
public final class Faults {
  private Faults() {}

  /** A line for each error: its class, a space, its message without line breaks. */
  public static String of(Throwable error) {
    StringBuilder lines = new StringBuilder();
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    Deque<Throwable> left = new ArrayDeque<>();
    left.add(error);
    while (!left.isEmpty()) {
      Throwable each = left.poll();
      if (!seen.add(each)) {
        continue;
      }
      String message = String.valueOf(each.getMessage()).replaceAll("\\s+", " ");
      lines.append(each.getClass().getSimpleName()).append(' ').append(message).append('\n');
      if (each.getCause() != null) {
        left.add(each.getCause());
      }
      Collections.addAll(left, each.getSuppressed());
      if (each instanceof RetriesExhaustedWithDetailsException details) {
        left.addAll(details.getCauses());
      }
    }
    return lines.toString();
  }
}

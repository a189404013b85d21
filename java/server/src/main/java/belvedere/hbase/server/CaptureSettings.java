package belvedere.hbase.server;

/** What a peer's configuration says; apart from the endpoint, which clients cannot load. */
public final class CaptureSettings {
  public static final String ENDPOINT = "belvedere.hbase.server.CaptureEndpoint";
  public static final String DIRECTORY = "belvedere.capture.directory";
  public static final String MARKS = "belvedere.capture.marks";
  public static final String ROLL = "belvedere.capture.roll.bytes";

  /** For tests: so many frames are delivered again although they were written. */
  public static final String REDELIVER = "belvedere.capture.redeliver";

  private CaptureSettings() {}
}

package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;

/**
 * Where a rank runs, as the ranks tell each other at the start.
 *
 * @param host the node's name
 * @param process the process id, in that node's numbering
 * @param started when the process began, in milliseconds since 1970, or 0 if that is not known;
 *     tells it from a later process of the same number
 */
record RankPlace(String host, long process, long started) {
  static final int BYTES = 128;

  /** This process. */
  static RankPlace own(String host) {
    return new RankPlace(host, ProcessHandle.current().pid(), started(ProcessHandle.current()));
  }

  private static long started(ProcessHandle process) {
    return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
  }

  byte[] encode() {
    byte[] name = host.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(BYTES)
        .putLong(process)
        .putLong(started)
        .put(Arrays.copyOf(name, BYTES - 2 * Long.BYTES))
        .array();
  }

  /** What {@link #encode} made. */
  static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    byte[] name = new byte[BYTES - 2 * Long.BYTES];
    from.get(name);
    String host = new String(name, StandardCharsets.UTF_8).trim().replaceAll("\\p{Cntrl}", "?");
    return new RankPlace(host, process, started);
  }

  /** Whether the process can be seen from here and is alive. */
  boolean isAlive() {
    ProcessHandle handle = ProcessHandle.of(process).orElse(null);
    return handle != null && handle.isAlive() && started(handle) == started;
  }

  @Override
  public String toString() {
    return "host=" + host + ", process=" + process;
  }
}

package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.time.Instant;
import org.gradientsync.collective.ShortText;

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

  private static final int HOST = 2 * Long.BYTES; // behind the two numbers

  /** This process. */
  static RankPlace own(String host) {
    return new RankPlace(host, ProcessHandle.current().pid(), started(ProcessHandle.current()));
  }

  private static long started(ProcessHandle process) {
    return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
  }

  byte[] encode() {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES).putLong(process).putLong(started);
    ShortText.put(bytes, HOST, BYTES - HOST, host);
    return bytes.array();
  }

  /** What {@link #encode} made. */
  static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    return new RankPlace(ShortText.get(from, offset + HOST, BYTES - HOST), process, started);
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

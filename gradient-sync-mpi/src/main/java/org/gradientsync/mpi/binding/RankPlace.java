package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import org.gradientsync.internal.host.Processes;
import org.gradientsync.internal.ranks.ShortText;

/**
 * The place where a rank runs. The ranks exchange it at the start.
 *
 * @param host the node's name
 * @param process the process id on that node
 * @param started see {@link Processes#started}
 */
record RankPlace(String host, long process, long started) {
  static final int BYTES = 128;

  private static final int HOST = 2 * Long.BYTES; // after the two numbers

  static RankPlace own(String host) {
    return of(host, ProcessHandle.current().pid());
  }

  static RankPlace of(String host, long process) {
    return new RankPlace(host, process, Processes.started(process));
  }

  byte[] encode() {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES).putLong(process).putLong(started);
    ShortText.put(bytes, HOST, BYTES - HOST, host);
    return bytes.array();
  }

  static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    return new RankPlace(ShortText.get(from, offset + HOST, BYTES - HOST), process, started);
  }

  /** Whether the process is visible here and has not ended. */
  boolean isAlive() {
    return Processes.isAlive(process, started);
  }

  /**
   * Describes why a process of this host does not respond.
   *
   * @return a predicate for errors, or an empty text if the process runs
   */
  String trouble() {
    if (!isAlive()) {
      return "has died";
    }
    return Processes.isStopped(process) ? "is stopped" : "";
  }

  @Override
  public String toString() {
    return "host=" + host + ", process=" + process;
  }
}

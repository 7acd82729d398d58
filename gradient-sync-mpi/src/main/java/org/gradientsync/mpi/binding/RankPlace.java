package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import org.gradientsync.internal.host.Processes;
import org.gradientsync.internal.ranks.ShortText;

/**
 * Where a rank runs, as the ranks tell each other at the start.
 *
 * @param host the node's name
 * @param process the process id, in that node's numbering
 * @param started see {@link Processes#started}
 */
record RankPlace(String host, long process, long started) {
  static final int BYTES = 128;

  private static final int HOST = 2 * Long.BYTES; // behind the two numbers

  /** This process. */
  static RankPlace own(String host) {
    return of(host, ProcessHandle.current().pid());
  }

  /** A process of this host. */
  static RankPlace of(String host, long process) {
    return new RankPlace(host, process, Processes.started(process));
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

  /** Whether the process can be seen from here and has not ended. */
  boolean isAlive() {
    return Processes.isAlive(process, started);
  }

  /**
   * What keeps the process from doing its part, if it is of this host.
   *
   * @return a verb for the texts of errors, or an empty text if it runs
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

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
 * @param namespace the PID namespace in which the process has that id
 */
record RankPlace(String host, long process, long started, long namespace) {
  static final int BYTES = 136;

  private static final int HOST = 3 * Long.BYTES; // after the three numbers

  static RankPlace own(String host) {
    return of(host, ProcessHandle.current().pid());
  }

  static RankPlace of(String host, long process) {
    return new RankPlace(host, process, Processes.started(process), Processes.NAMESPACE);
  }

  byte[] encode() {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES);
    bytes.putLong(process).putLong(started).putLong(namespace);
    ShortText.put(bytes, HOST, BYTES - HOST, host);
    return bytes.array();
  }

  static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    long namespace = from.getLong();
    String host = ShortText.get(from, offset + HOST, BYTES - HOST);
    return new RankPlace(host, process, started, namespace);
  }

  /** Whether the process is visible here and has not ended. */
  boolean isAlive() {
    return namespace == Processes.NAMESPACE && Processes.isAlive(process, started);
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

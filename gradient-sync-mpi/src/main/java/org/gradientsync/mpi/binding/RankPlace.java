package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.gradientsync.core.host.Processes;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.ranks.ShortText;

/**
 * The place where a rank runs. The ranks exchange it at the start.
 *
 * @param host the node's name
 * @param process the process id on that node
 * @param started see {@link Processes#started}
 * @param namespace the PID namespace in which the process has that id
 * @param memory the same for ranks that can share memory; 0 if unknown
 */
record RankPlace(String host, long process, long started, long namespace, long memory) {
  static final int BYTES = 136;

  private static final int HOST = 4 * Long.BYTES; // after the numbers

  static RankPlace own(String host) {
    long process = ProcessHandle.current().pid();
    String memory = SharedFiles.identity(host);
    return new RankPlace(
        host,
        process,
        Processes.started(process),
        Processes.NAMESPACE,
        memory.isEmpty() ? 0 : digest(memory));
  }

  static RankPlace of(String host, long process) {
    return new RankPlace(host, process, Processes.started(process), Processes.NAMESPACE, 0);
  }

  private static long digest(String text) {
    return UUID.nameUUIDFromBytes(text.getBytes(StandardCharsets.UTF_8)).getMostSignificantBits();
  }

  /**
   * Finds the ranks' nodes. Ranks that can share memory are on one node, even where MPI reports
   * them on different ones: it knows host names only, or has not reached its process manager.
   *
   * @param ofMpi for each rank, the lowest rank of its node as MPI reports it
   * @return for each rank, the lowest rank of its node
   */
  static int[] nodes(int[] ofMpi, RankPlace... places) {
    int[] nodes = ofMpi.clone();
    Map<Long, Integer> first = new HashMap<>(); // the lowest rank with each memory
    for (int rank = 0; rank < nodes.length; rank++) {
      long memory = places[rank].memory;
      Integer other = memory == 0 ? null : first.putIfAbsent(memory, rank);
      if (other != null && nodes[other] != nodes[rank]) {
        int kept = Math.min(nodes[other], nodes[rank]);
        int dropped = Math.max(nodes[other], nodes[rank]);
        Arrays.setAll(nodes, i -> nodes[i] == dropped ? kept : nodes[i]);
      }
    }
    return nodes;
  }

  byte[] encode() {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES);
    bytes.putLong(process).putLong(started).putLong(namespace).putLong(memory);
    ShortText.put(bytes, HOST, BYTES - HOST, host);
    return bytes.array();
  }

  static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    long namespace = from.getLong();
    long memory = from.getLong();
    String host = ShortText.get(from, offset + HOST, BYTES - HOST);
    return new RankPlace(host, process, started, namespace, memory);
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

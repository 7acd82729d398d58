package org.gradientsync.core.backend;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The place where a rank runs. The ranks exchange it at the start.
 *
 * @param host the node's name
 * @param process the process id on that node
 * @param started see {@link Processes#started}
 * @param namespace the PID namespace in which the process has that id
 * @param memory the same for ranks that can share memory; 0 if unknown
 */
public record RankPlace(String host, long process, long started, long namespace, long memory) {
  /** The size of {@link #encode} in bytes. */
  public static final int BYTES = 136;

  private static final int HOST = 4 * Long.BYTES; // after the numbers

  /**
   * {@return the place of this process}
   *
   * @param host this host's name
   */
  public static RankPlace own(String host) {
    long process = ProcessHandle.current().pid();
    String memory = NodeIdentity.of(host);
    return new RankPlace(
        host,
        process,
        Processes.started(process),
        Processes.NAMESPACE,
        memory.isEmpty() ? 0 : Answers.digest(memory));
  }

  /**
   * {@return the place of a process that this one can see, without what it can share memory with}
   *
   * @param host this host's name
   * @param process its id
   */
  public static RankPlace of(String host, long process) {
    return new RankPlace(host, process, Processes.started(process), Processes.NAMESPACE, 0);
  }

  /**
   * Finds the ranks' nodes. Ranks that can share memory are on one node, even where their launcher
   * reports them on different ones: it may know host names only.
   *
   * @param given for each rank, the lowest rank of its node as the launcher reports it
   * @param places of all ranks
   * @return for each rank, the lowest rank of its node
   */
  public static int[] nodes(int[] given, RankPlace... places) {
    int[] nodes = given.clone();
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

  /** {@return this place as {@link #BYTES} bytes} */
  public byte[] encode() {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES);
    bytes.putLong(process).putLong(started).putLong(namespace).putLong(memory);
    ShortText.put(bytes, HOST, BYTES - HOST, host);
    return bytes.array();
  }

  /**
   * {@return the place that {@link #encode} has written}
   *
   * @param bytes not trusted
   * @param offset of the first one
   */
  public static RankPlace decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    long process = from.getLong();
    long started = from.getLong();
    long namespace = from.getLong();
    long memory = from.getLong();
    String host = ShortText.get(from, offset + HOST, BYTES - HOST);
    return new RankPlace(host, process, started, namespace, memory);
  }

  /**
   * {@return whether the process is visible here and has not ended; false also if it runs in
   * another PID namespace}
   */
  public boolean isAlive() {
    return namespace == Processes.NAMESPACE && Processes.isAlive(process, started);
  }

  /**
   * {@return why a process of this host does not respond, as a predicate for errors, or an empty
   * text if the process runs}
   */
  public String trouble() {
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

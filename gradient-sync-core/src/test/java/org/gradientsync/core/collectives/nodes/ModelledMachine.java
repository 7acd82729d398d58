package org.gradientsync.core.collectives.nodes;

/**
 * Parameters of modelled nodes that are all alike. Times are picoseconds.
 *
 * @param ranksPerNode each on a core of its own
 * @param link bytes per second in each direction of a node's link, without what headers take
 * @param latency of a message between nodes
 * @param message what a core spends for each message that it sends or receives
 * @param flag until a rank sees what another one of its node has written
 * @param call what a core spends to compare the call of one rank
 * @param core bytes per second that a core adds or copies
 * @param memory bytes per second that the cores of a node read and write together
 */
record ModelledMachine(
    int ranksPerNode,
    double link,
    long latency,
    long message,
    long flag,
    long call,
    double core,
    double memory) {
  static final long NANOSECOND = 1000;
  static final long MICROSECOND = 1000 * NANOSECOND;
  static final double SECOND = 1e6 * MICROSECOND;

  /** A usual node of a cluster: 100 Gbit/s, eight ranks. */
  static final ModelledMachine CLUSTER =
      new ModelledMachine(
          8,
          12.5e9,
          5 * MICROSECOND,
          MICROSECOND / 2,
          200 * NANOSECOND,
          5 * NANOSECOND,
          20e9,
          200e9);

  ModelledMachine {
    if (ranksPerNode < 1 || Math.min(Math.min(link, core), memory) <= 0) {
      throw new IllegalArgumentException("a node has ranks and rates");
    }
  }

  /** The same with another network. */
  ModelledMachine with(long newLatency, long newMessage) {
    return new ModelledMachine(
        ranksPerNode, link, newLatency, newMessage, flag, call, core, memory);
  }

  /** How long a link carries some bytes. */
  long linkTime(long bytes) {
    return Math.round(bytes / link * SECOND);
  }

  /** How long a core adds some bytes of contributions while the others do the same. */
  long addTime(long bytes) {
    return Math.round(bytes / Math.min(core, memory / ranksPerNode) * SECOND);
  }

  /** How long a core copies some bytes while the others do the same. */
  long copyTime(long bytes) {
    return Math.round(bytes / Math.min(core, memory / ranksPerNode / 2) * SECOND);
  }
}

package org.gradientsync.core.collectives.nodes;

/**
 * A modelled all-reduce.
 *
 * @param picoseconds until the last rank has the result
 * @param messages that the busiest rank sends
 * @param nodeMessages that each simulated node sends to others
 * @param nodeBytes that each simulated node sends to others
 */
record Modelled(long picoseconds, long messages, long[] nodeMessages, long[] nodeBytes) {
  double seconds() {
    return picoseconds / ModelledMachine.SECOND;
  }
}

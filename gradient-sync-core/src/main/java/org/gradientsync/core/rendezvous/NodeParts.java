package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What the ranks of one node add to a sum over nodes, and its result, in memory that they have
 * mapped. Each has two slots, between which the calls alternate.
 */
final class NodeParts {
  /** Above this size, the ranks of a node add faster if each adds a part of the elements. */
  static final int MAX_BYTES = 16 << 10;

  private final ByteBuffer[][] parts; // by slot and local rank
  private final ByteBuffer[] results; // by slot

  /**
   * @param memory {@link #bytes}, the same for all ranks of the node
   */
  NodeParts(ByteBuffer memory, int ranks) {
    parts = new ByteBuffer[GatheredCalls.SLOTS][ranks];
    results = new ByteBuffer[GatheredCalls.SLOTS];
    for (int slot = 0; slot < results.length; slot++) {
      int at = slot * (ranks + 1) * MAX_BYTES;
      results[slot] = part(memory, at);
      for (int local = 0; local < ranks; local++) {
        parts[slot][local] = part(memory, at + (local + 1) * MAX_BYTES);
      }
    }
  }

  private static ByteBuffer part(ByteBuffer memory, int at) {
    return memory.slice(at, MAX_BYTES).order(ByteOrder.nativeOrder());
  }

  /** The size of the memory. */
  static int bytes(int ranks) {
    return GatheredCalls.SLOTS * (ranks + 1) * MAX_BYTES;
  }

  ByteBuffer part(int local, int slot) {
    return parts[slot][local];
  }

  ByteBuffer result(int slot) {
    return results[slot];
  }
}

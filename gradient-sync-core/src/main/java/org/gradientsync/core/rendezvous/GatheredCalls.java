package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.core.backend.Counter;

/**
 * The calls of all ranks of a group, and what travels with them, in memory that the ranks of one
 * node have mapped. Each rank of the node writes its own entry, the node's leader those of other
 * nodes, and then a counter.
 */
final class GatheredCalls {
  /** The number of slots between which the calls alternate. */
  static final int SLOTS = 2;

  /** Above this size, copying and adding on every rank takes longer than more messages. */
  private static final int MAX_PAYLOAD = 8 << 10;

  private static final int MAX_PAYLOAD_OF_ALL = 256 << 10;
  private static final int MIN_MAX_PAYLOAD = 128; // so that a rank keeps little for each other one
  private static final int MIN_PAYLOAD = 64;

  private static final int SAME = Long.BYTES; // of each slot, beside the counter

  private final ByteBuffer memory;
  private final int ranks;
  private final ByteBuffer[] entries; // by slot and rank; each made at first use
  private final Counter gathered;
  private final int payload;

  /**
   * @param memory {@link #bytes} zeros in native byte order, the same for all ranks of the node
   * @param ranks the number of ranks of the group
   * @param payload the maximum size of what travels with each call
   */
  GatheredCalls(ByteBuffer memory, int ranks, int payload) {
    this.memory = memory;
    this.payload = payload;
    gathered = new Counter(memory, 0);
    this.ranks = ranks;
    entries = new ByteBuffer[SLOTS * ranks];
  }

  /** The maximum size of what travels with each call: 0 or a power of two. */
  static int payloadBytes(int ranks) {
    int most = Math.min(MAX_PAYLOAD, Integer.highestOneBit(MAX_PAYLOAD_OF_ALL / ranks));
    return most < MIN_MAX_PAYLOAD ? 0 : most;
  }

  /**
   * The part of an entry that is sent for a payload: a few sizes, so that there are few messages.
   */
  static int sentBytes(int payload) {
    return payload == 0
        ? 0
        : Math.max(MIN_PAYLOAD, Integer.highestOneBit(Math.max(1, payload - 1)) << 1);
  }

  /** The size of the memory. */
  static int bytes(int ranks, int payload) {
    return Counter.LINE + SLOTS * ranks * (CallRecord.BYTES + payload);
  }

  /** The maximum size of what travels with each call. */
  int payloadBytes() {
    return payload;
  }

  /** A rank's {@link CallRecord}, followed by what travels with it. */
  ByteBuffer entry(int peer, int slot) {
    int index = slot * ranks + peer;
    if (entries[index] == null) {
      int bytes = CallRecord.BYTES + payload;
      entries[index] =
          memory.slice(Counter.LINE + index * bytes, bytes).order(ByteOrder.nativeOrder());
    }
    return entries[index];
  }

  /**
   * Publishes the entries of a call.
   *
   * @param same whether all calls are the same, so that those of other nodes are not written
   */
  void publish(long sequence, boolean same) {
    memory.put(same(slot(sequence)), (byte) (same ? 1 : 0));
    gathered.set(sequence);
  }

  private static int same(int slot) {
    return SAME + slot;
  }

  /** The slot of a call. */
  static int slot(long sequence) {
    return (int) (sequence & 1);
  }

  /** Whether all calls of a slot are the same. Known once they are gathered. */
  boolean areSame(int slot) {
    return memory.get(same(slot)) != 0;
  }

  /** Whether the entries of a call are there. */
  boolean isGathered(long sequence) {
    return gathered.get() >= sequence;
  }
}

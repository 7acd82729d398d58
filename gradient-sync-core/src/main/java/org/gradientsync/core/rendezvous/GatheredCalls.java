package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.core.backend.Counter;

/**
 * The calls of all ranks of a group, and what travels with them, in memory that the ranks of one
 * node have mapped: contributions of all ranks, or what the ranks of the node add to a sum over
 * nodes, and its result. Each rank of the node writes its own entry, the node's leader those of
 * other nodes, and then a counter. If the entries of its own node come back to a leader, it writes
 * the same bytes again. There are two {@linkplain Rendezvous#slot slots} of everything.
 */
public final class GatheredCalls {
  /** The maximum size of a sum. Above it, a node adds faster if each rank adds some elements. */
  public static final int MAX_SUM = 28 << 10;

  // Above this size, copying and adding on every rank takes longer than more messages.
  private static final int MAX_PAYLOAD = 8 << 10;
  private static final int MAX_PAYLOAD_OF_ALL = 256 << 10;
  private static final int MIN_MAX_PAYLOAD = 128; // so that a rank keeps little for each other one
  private static final int MIN_PAYLOAD = 64;

  /** More than any {@link #sizeIndex}. */
  static final int SIZES = 4 * Integer.SIZE;

  private static final int SAME = Long.BYTES; // of each slot, beside the counter

  private final ByteBuffer memory;
  private final int ranks;
  private final ByteBuffer[] entries; // by slot and rank; each made at first use
  private final Counter gathered;
  private final int payload; // the maximum size of what travels with each call
  private final int nodeSize; // the number of ranks of the node that add to sums; 0 if none travel

  /** Takes {@link #bytes} zeros, the same for all ranks of the node. */
  GatheredCalls(ByteBuffer memory, int ranks, int payload, int nodeSize) {
    this.memory = memory;
    this.payload = payload;
    this.nodeSize = nodeSize;
    gathered = new Counter(memory, 0);
    this.ranks = ranks;
    entries = new ByteBuffer[Rendezvous.SLOTS * ranks];
  }

  private ByteBuffer slice(int at, int bytes) {
    return memory.slice(at, bytes).order(ByteOrder.nativeOrder());
  }

  /** The maximum size of what travels with each call of so many ranks: 0 or a power of two. */
  public static int payloadBytes(int ranks) {
    int most = Math.min(MAX_PAYLOAD, Integer.highestOneBit(MAX_PAYLOAD_OF_ALL / ranks));
    return most < MIN_MAX_PAYLOAD ? 0 : most;
  }

  /** What is sent for a payload: a few sizes, four for each power of two. */
  static int sentBytes(int payload) {
    int step = Math.max(MIN_PAYLOAD, Integer.highestOneBit(Math.max(1, payload - 1))) / 4;
    return payload == 0 ? 0 : Math.max(MIN_PAYLOAD, (payload + step - 1) / step * step);
  }

  /** The number of such a size, less than {@link #SIZES}. */
  static int sizeIndex(int sent) {
    int bits = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(Math.max(MIN_PAYLOAD, sent));
    return sent == 0 ? 0 : 4 * bits + (sent >> bits - 2) % 4;
  }

  static int bytes(int ranks, int payload, int nodeSize) {
    int sums = nodeSize == 0 ? 0 : (nodeSize + 1) * MAX_SUM;
    return Counter.LINE + Rendezvous.SLOTS * (ranks * (CallRecord.BYTES + payload) + sums);
  }

  public boolean carries() {
    return payload > 0 || nodeSize > 0;
  }

  public int payloadBytes() {
    return payload;
  }

  /** A rank's {@link CallRecord}, followed by what travels with it. */
  ByteBuffer entry(int peer, int slot) {
    int index = slot * ranks + peer;
    if (entries[index] == null) {
      int bytes = CallRecord.BYTES + payload;
      entries[index] = slice(Counter.LINE + index * bytes, bytes);
    }
    return entries[index];
  }

  public ByteBuffer payload(int peer, int slot) {
    return entry(peer, slot).slice(CallRecord.BYTES, payload).order(ByteOrder.nativeOrder());
  }

  public int nodeSize() {
    return nodeSize;
  }

  /** The memory for what a rank of this node adds to a sum; after the last one, for the result. */
  public ByteBuffer part(int localRank, int slot) {
    int index = localRank * Rendezvous.SLOTS + slot;
    return slice(bytes(ranks, payload, 0) + index * MAX_SUM, MAX_SUM);
  }

  /** Publishes the entries of a call. If all are the same, those of other nodes are not written. */
  void publish(long sequence, boolean same) {
    memory.put(SAME + Rendezvous.slot(sequence), (byte) (same ? 1 : 0));
    gathered.set(sequence);
  }

  /** Whether all calls of a slot are the same. Known once they are gathered. */
  boolean areSame(int slot) {
    return memory.get(SAME + slot) != 0;
  }

  boolean isGathered(long sequence) {
    return gathered.get() >= sequence;
  }
}

package org.gradientsync.spi;

import java.nio.Buffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * A call of a communicator that moves elements without reducing them, or a barrier. Its input and
 * output are Java buffers, whose remaining elements count. It does not change, has no device
 * buffers and no operation, and no {@link Reducer} gets it. A communicator copies what it reduces
 * to buffers in host memory, for a {@link CollectiveCall}.
 */
public final class HostCall extends CollectiveCall {
  /** The tag of a call that is no message. */
  public static final int NO_TAG = -1;

  private final Buffer hostIn;
  private final Buffer hostOut;
  private final int tag;

  /**
   * Creates a call that is no message.
   *
   * @param kind BROADCAST, ALL_GATHER, GATHER, SCATTER or BARRIER
   * @param in this rank's input, or null if it has none
   * @param out this rank's output, or null if it has none
   * @param root the root, or {@link RankGroup#NO_RANK}
   */
  public HostCall(Kind kind, Buffer in, Buffer out, int root) {
    this(kind, in, out, root, NO_TAG);
  }

  /**
   * Creates a message to or from another rank.
   *
   * @param kind SEND or RECEIVE
   * @param in the elements to send, or null
   * @param out where to receive the elements, or null
   * @param root the other rank
   * @param tag 0 or more
   */
  public HostCall(Kind kind, Buffer in, Buffer out, int root, int tag) {
    super(kind, null, null, null, root);
    hostIn = in;
    hostOut = out;
    this.tag = tag;
  }

  /** {@return this rank's input, or null if it has none} */
  public Buffer hostIn() {
    return hostIn;
  }

  /** {@return this rank's output, or null if it has none} */
  public Buffer hostOut() {
    return hostOut;
  }

  /** {@return the input, or the output if there is no input; null for a barrier} */
  public Buffer hostBuffer() {
    return hostIn != null ? hostIn : hostOut;
  }

  /** {@return the tag of a message, the same on both ranks, or {@link #NO_TAG}} */
  public int tag() {
    return tag;
  }

  /** Throws an {@link UnsupportedOperationException}, because this call does not change. */
  @Override
  public CollectiveCall set(
      Kind newKind, DeviceBuffer newIn, DeviceBuffer newOut, ReduceOp newOp, int newRoot) {
    throw new UnsupportedOperationException("a call on Java buffers does not change: " + this);
  }

  /** Throws an {@link UnsupportedOperationException}, because this call does not change. */
  @Override
  public CollectiveCall counts(long[] newInCounts, long[] newOutCounts) {
    throw new UnsupportedOperationException("a call on Java buffers does not change: " + this);
  }

  @Override
  public HostCall copy() {
    return this;
  }

  @Override
  public long blockCount(int ranks) {
    return hostIn != null
        ? hostIn.remaining() / kind().inputBlocks(ranks)
        : hostOut != null ? hostOut.remaining() / kind().outputBlocks(ranks) : 0;
  }

  @Override
  public boolean equals(Object object) {
    return this == object;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }

  @Override
  public String toString() {
    return kind() + "(" + hostIn + ", " + hostOut + ", rank=" + root() + ", tag=" + tag + ")";
  }
}

package org.gradientsync.spi;

import java.util.Arrays;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * What one rank asks for in one call: what is to happen, with which input and output, with which
 * reduction, and with which root or peer. A {@link HostCall} has Java buffers instead.
 *
 * <p>Input and output consist of blocks of the same type and count: one block, or one for each rank
 * in rank order. All-reduces and broadcasts are in place: their input is their output. A send has
 * an input only, a receive an output only.
 *
 * <p>A program may give each block a count of its own. The sync makes other calls of such a call,
 * so a {@link Reducer} never gets one; a {@link CallInterceptor} does.
 *
 * <p>A sync sets one object again for each call, so that a call allocates nothing. Who keeps a call
 * keeps a {@link #copy}. Two calls are equal if they ask for the same with the same buffers. Not
 * thread-safe.
 */
public class CollectiveCall {
  /** What a call does. */
  public enum Kind {
    /** Every rank gets the reduction of all ranks' elements, in place. */
    ALL_REDUCE("allReduce"),

    /** Every rank gets the root's elements, in place. */
    BROADCAST("broadcast"),

    /**
     * Every rank gets the blocks of all ranks. The input may be this rank's block of the output.
     */
    ALL_GATHER("allGather"),

    /**
     * Rank r gets the reduction of all ranks' blocks r. The output may be this rank's block of the
     * input.
     */
    REDUCE_SCATTER("reduceScatter"),

    /** The root gets the reduction of all ranks' blocks. Input and output may be the same. */
    REDUCE("reduce"),

    /** The root gets the blocks of all ranks. Its input may be its block of the output. */
    GATHER("gather"),

    /** Rank r gets block r of the root. The root's output may be its block of the input. */
    SCATTER("scatter"),

    /** Rank r gets block r of all ranks. Input and output must not overlap. */
    ALL_TO_ALL("allToAll"),

    /** A message to one other rank. */
    SEND("send"),

    /** A message from one other rank. */
    RECEIVE("receive"),

    /** No data: every rank returns after all ranks have called. */
    BARRIER("barrier");

    private final String text;

    Kind(String text) {
      this.text = text;
    }

    /** {@return the call's name in the API, for example {@code allReduce}} */
    public String text() {
      return text;
    }

    /** {@return whether one rank is special, the root} */
    public boolean hasRoot() {
      return this == BROADCAST || this == REDUCE || this == GATHER || this == SCATTER;
    }

    /** {@return whether blocks are reduced, with an operation} */
    public boolean reduces() {
      return this == ALL_REDUCE || this == REDUCE || this == REDUCE_SCATTER;
    }

    /** {@return whether only two ranks take part, as in a send and a receive} */
    public boolean isMessage() {
      return this == SEND || this == RECEIVE;
    }

    /**
     * {@return the number of blocks of the input, 1 or the number of ranks}
     *
     * @param ranks the number of ranks
     */
    public int inputBlocks(int ranks) {
      return this == REDUCE_SCATTER || this == SCATTER || this == ALL_TO_ALL ? ranks : 1;
    }

    /**
     * {@return the number of blocks of the output, 1 or the number of ranks}
     *
     * @param ranks the number of ranks
     */
    public int outputBlocks(int ranks) {
      return this == ALL_GATHER || this == GATHER || this == ALL_TO_ALL ? ranks : 1;
    }

    /**
     * {@return whether a rank has an input: false for ranks other than the root of a scatter, for a
     * receive and a barrier}
     *
     * @param rank the rank
     * @param root the root, if there is one
     */
    public boolean hasInput(int rank, int root) {
      return this == SCATTER ? rank == root : this != RECEIVE && this != BARRIER;
    }

    /**
     * {@return whether a rank has an output: false for ranks other than the root of a gather or a
     * reduction to one rank, for a send and a barrier}
     *
     * @param rank the rank
     * @param root the root, if there is one
     */
    public boolean hasOutput(int rank, int root) {
      return this == GATHER || this == REDUCE ? rank == root : this != SEND && this != BARRIER;
    }
  }

  private Kind kind;
  private DeviceBuffer in;
  private DeviceBuffer out;
  private ReduceOp op;
  private int root;
  private long[] inCounts; // or null
  private long[] outCounts; // or null

  /** Creates a call, to be {@link #set}. */
  public CollectiveCall() {}

  /**
   * Creates a call.
   *
   * @param kind what it does
   * @param in this rank's input, or null if it has none
   * @param out this rank's output, or null if it has none
   * @param op the reduction, or null if nothing is reduced
   * @param root the root, or the other rank of a message, or {@link RankGroup#NO_RANK}
   */
  public CollectiveCall(Kind kind, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    assign(kind, in, out, op, root);
  }

  private void assign(
      Kind newKind, DeviceBuffer newIn, DeviceBuffer newOut, ReduceOp newOp, int newRoot) {
    kind = newKind;
    in = newIn;
    out = newOut;
    op = newOp;
    root = newRoot;
    inCounts = null;
    outCounts = null;
  }

  /**
   * Sets all fields.
   *
   * @param newKind what it does
   * @param newIn this rank's input, or null if it has none
   * @param newOut this rank's output, or null if it has none
   * @param newOp the reduction, or null if nothing is reduced
   * @param newRoot the root, or the other rank of a message, or {@link RankGroup#NO_RANK}
   * @return this call
   */
  public CollectiveCall set(
      Kind newKind, DeviceBuffer newIn, DeviceBuffer newOut, ReduceOp newOp, int newRoot) {
    assign(newKind, newIn, newOut, newOp, newRoot);
    return this;
  }

  /**
   * Gives each block a count of its own.
   *
   * @param newInCounts the count of each block of the input, or null if the input is one block
   * @param newOutCounts the count of each block of the output, or null if the output is one block
   * @return this call, which keeps the arrays; {@link #copy} copies them
   */
  public CollectiveCall counts(long[] newInCounts, long[] newOutCounts) {
    inCounts = newInCounts;
    outCounts = newOutCounts;
    return this;
  }

  /** {@return a new call, equal to this one} */
  public CollectiveCall copy() {
    return new CollectiveCall(kind, in, out, op, root)
        .counts(
            inCounts == null ? null : inCounts.clone(),
            outCounts == null ? null : outCounts.clone());
  }

  /**
   * {@return a new all-reduce}
   *
   * @param buffer the elements to reduce in place
   * @param op the reduction
   */
  public static CollectiveCall allReduce(DeviceBuffer buffer, ReduceOp op) {
    return new CollectiveCall(Kind.ALL_REDUCE, buffer, buffer, op, RankGroup.NO_RANK);
  }

  /**
   * {@return a new broadcast}
   *
   * @param buffer the elements to send or to receive
   * @param root the rank that has the data
   */
  public static CollectiveCall broadcast(DeviceBuffer buffer, int root) {
    return new CollectiveCall(Kind.BROADCAST, buffer, buffer, null, root);
  }

  /**
   * {@return a new message to another rank}
   *
   * @param buffer the elements to send
   * @param peer the other rank
   */
  public static CollectiveCall send(DeviceBuffer buffer, int peer) {
    return new CollectiveCall(Kind.SEND, buffer, null, null, peer);
  }

  /**
   * {@return a new message from another rank}
   *
   * @param buffer where to receive the elements
   * @param peer the other rank
   */
  public static CollectiveCall receive(DeviceBuffer buffer, int peer) {
    return new CollectiveCall(Kind.RECEIVE, null, buffer, null, peer);
  }

  /** {@return what this call does: its kind, the same on all ranks but for messages} */
  public final Kind kind() {
    return kind;
  }

  /** {@return this rank's input, or null if it has none} */
  public final DeviceBuffer in() {
    return in;
  }

  /** {@return this rank's output, or null if it has none} */
  public final DeviceBuffer out() {
    return out;
  }

  /**
   * {@return the buffer to whose stream the call belongs: the output, or the input if there is no
   * output; null for a barrier} The library orders the other one's stream with it.
   */
  public final DeviceBuffer buffer() {
    return out != null ? out : in;
  }

  /** {@return the reduction, the same on all ranks; null if nothing is reduced} */
  public final ReduceOp op() {
    return op;
  }

  /**
   * {@return the root, the same on all ranks; the other rank of a message; {@link
   * RankGroup#NO_RANK} if there is none}
   */
  public final int root() {
    return root;
  }

  /** {@return the other rank of a message, a rank of the group} */
  public final int peer() {
    return root;
  }

  /** {@return whether this rank sends a message} */
  public final boolean sends() {
    return kind == Kind.SEND;
  }

  /** {@return whether each block has a count of its own} */
  public final boolean hasCounts() {
    return inCounts != null || outCounts != null;
  }

  /** {@return the counts of the input's blocks, by rank; null for one block or one count of all} */
  public final long[] inCounts() {
    return inCounts;
  }

  /**
   * {@return the counts of the output's blocks, by rank; null for one block or one count of all}
   */
  public final long[] outCounts() {
    return outCounts;
  }

  /**
   * {@return the number of elements of a block, 0 or more, if all blocks have the same count}
   *
   * @param ranks the number of ranks
   */
  public long blockCount(int ranks) {
    return in != null
        ? in.count() / kind.inputBlocks(ranks)
        : out != null ? out.count() / kind.outputBlocks(ranks) : 0;
  }

  @Override
  public boolean equals(Object object) {
    return object instanceof CollectiveCall other
        && getClass() == other.getClass()
        && kind == other.kind
        && in == other.in
        && out == other.out
        && op == other.op
        && root == other.root
        && Arrays.equals(inCounts, other.inCounts)
        && Arrays.equals(outCounts, other.outCounts);
  }

  @Override
  public int hashCode() {
    int hash = System.identityHashCode(in) * 31 + System.identityHashCode(out);
    hash = hash * 31 + kind.ordinal();
    hash = (hash * 31 + (op == null ? -1 : op.ordinal())) * 31 + root;
    return hasCounts()
        ? (hash * 31 + Arrays.hashCode(inCounts)) * 31 + Arrays.hashCode(outCounts)
        : hash;
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(String.valueOf(kind)).append('(').append(in);
    if (out != in) {
      text.append(", ").append(out);
    }
    if (op != null) {
      text.append(", ").append(op);
    }
    if (inCounts != null) {
      text.append(", inCounts=").append(Arrays.toString(inCounts));
    }
    if (outCounts != null) {
      text.append(", outCounts=").append(Arrays.toString(outCounts));
    }
    return (root == RankGroup.NO_RANK ? text : text.append(", rank=").append(root))
        .append(')')
        .toString();
  }
}

package org.gradientsync;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;

/**
 * A group of ranks, and collectives and messages between them for small amounts of host memory: the
 * control plane. Gradients go through {@link GradientSync}.
 *
 * <p>Calls take {@code java.nio} buffers and use the elements between position and limit. They do
 * not change position or limit. A buffer can be a {@code FloatBuffer}, {@code DoubleBuffer}, {@code
 * IntBuffer}, {@code LongBuffer}, {@code ShortBuffer} or {@code ByteBuffer}, on the heap or direct.
 * Use {@code wrap} for arrays.
 *
 * <p>Every rank of the communicator must call the collectives in the same order and with the same
 * type and counts. If the calls differ, every rank throws a {@link MismatchedCallException} that
 * lists each rank's call, and no buffer is changed. Ranks that wait for each other in different
 * calls of one communicator throw it within a second, too; this breaks the communicator. If the
 * calls are of several communicators, of which one thread of each rank makes all, that takes about
 * 10 seconds. If a rank does not join a call within the {@linkplain #timeout() time-out}, the
 * others throw a {@link RankLostException} that names it; this breaks the communicator, too.
 *
 * <p>A message has exactly as many elements as its receiver asks for, and one source that the
 * receiver names.
 *
 * <p>Calls throw, also where their own documentation names less: an {@link IllegalStateException}
 * if the communicator is closed or broken; an {@link IllegalArgumentException} for a rank or a tag
 * that there is not, counts or types that do not fit each other, and a read-only target; and a
 * {@link RankLostException} if the waiting thread is interrupted, which breaks the communicator.
 *
 * <p>Several threads may use a communicator. Their calls run one after the other, and the program
 * must make sure that the order is the same on all ranks.
 */
public interface Communicator extends AutoCloseable {
  /** The largest tag that {@link #send} and {@link #receive} take. */
  int MAX_TAG = 2047;

  /** {@return this rank's number, from 0 to size - 1} */
  int rank();

  /** {@return the number of ranks, 1 or more} */
  int size();

  /**
   * {@return this rank's number among the ranks of its node, which are numbered in rank order, from
   * 0 to localSize - 1}
   */
  int localRank();

  /** {@return the number of ranks on this rank's node, 1 or more} */
  int localSize();

  /** {@return the number of nodes that the ranks of this communicator run on, 1 or more} */
  int nodeCount();

  /** {@return how long a call waits for another rank, more than zero} */
  Duration timeout();

  /** Waits until every rank has called it. For a barrier among some ranks use {@link #split}. */
  void barrier();

  /**
   * Reduces each element over all ranks, in place. {@link ReduceOp} defines the bits of the result.
   *
   * @param data the elements to reduce; the same count on all ranks. A byte buffer has any type, in
   *     native byte order
   * @param type the element type, which must be one that the buffer can hold
   * @param op the reduction
   */
  void allReduce(Buffer data, DataType type, ReduceOp op);

  /**
   * {@link #allReduce(Buffer, DataType, ReduceOp)} with the element type of the buffer's class.
   *
   * @param data a float, double, int or long buffer
   * @param op the reduction
   * @throws IllegalArgumentException for any other buffer, such as a byte or short buffer, which
   *     can hold several types
   */
  default void allReduce(Buffer data, ReduceOp op) {
    if (data instanceof FloatBuffer) {
      allReduce(data, DataType.FLOAT32, op);
    } else if (data instanceof DoubleBuffer) {
      allReduce(data, DataType.FLOAT64, op);
    } else if (data instanceof IntBuffer) {
      allReduce(data, DataType.INT32, op);
    } else if (data instanceof LongBuffer) {
      allReduce(data, DataType.INT64, op);
    } else {
      throw new IllegalArgumentException(
          "element type is ambiguous: buffer="
              + (data == null ? null : data.getClass().getSimpleName())
              + "; call allReduce(data, type, op)");
    }
  }

  /**
   * Copies the root's data to all ranks.
   *
   * @param data the source on the root, the target elsewhere; writable, and the same type and
   *     count, on all ranks
   * @param root the rank that has the data
   */
  void broadcast(Buffer data, int root);

  /**
   * Concatenates all ranks' data in rank order, on every rank.
   *
   * @param send this rank's data; the same type and count on all ranks
   * @param receive size times as many elements as send; must not overlap send
   */
  void allGather(Buffer send, Buffer receive);

  /**
   * Reduces over all ranks and gives each rank its own part of the result.
   *
   * @param send size times as many elements as receive, rank 0's part first; not changed
   * @param receive this rank's part of the result
   * @param type the element type, which must be one that the buffers can hold
   * @param op the reduction
   */
  void reduceScatter(Buffer send, Buffer receive, DataType type, ReduceOp op);

  /**
   * Concatenates all ranks' data in rank order, on the root.
   *
   * @param send this rank's data; the same type and count on all ranks
   * @param receive on the root, size times as many elements; ignored and may be null elsewhere
   * @param root the rank that receives
   */
  void gather(Buffer send, Buffer receive, int root);

  /**
   * Gives each rank its part of the root's data.
   *
   * @param send on the root, size times as many elements as receive; elsewhere ignored, may be null
   * @param receive this rank's part; the same type and count on all ranks
   * @param root the rank that has the data
   */
  void scatter(Buffer send, Buffer receive, int root);

  /**
   * Sends to one rank. Synchronous: it returns when the other rank has received. Two ranks that
   * both send first therefore deadlock, and both throw; use {@link #sendReceive} instead.
   *
   * @param data the elements to send
   * @param destination another rank
   * @param tag from 0 to {@link #MAX_TAG}; the receiver passes the same
   * @throws MismatchedCallException on both ranks if the receiver expects another type, count or
   *     tag; on all ranks, and breaking the communicator, if the receiver waits for this rank in
   *     another call
   */
  void send(Buffer data, int destination, int tag);

  /**
   * Receives from one rank.
   *
   * @param data the target, with exactly as many elements as are sent
   * @param source another rank
   * @param tag from 0 to {@link #MAX_TAG}; the sender passes the same
   * @throws MismatchedCallException on both ranks if the sender has another type, count or tag; on
   *     all ranks, and breaking the communicator, if the sender waits for this rank in another call
   */
  void receive(Buffer data, int source, int tag);

  /**
   * Sends to one rank and receives from that or another one at once, as in a halo exchange.
   *
   * @param send the elements to send
   * @param destination the rank that receives them
   * @param receive the target of the source's elements; must not overlap send
   * @param source the rank that sends them
   * @param tag from 0 to {@link #MAX_TAG}; the same on all ranks involved
   * @throws MismatchedCallException as for {@link #send} and {@link #receive}; if only one of the
   *     two messages matches, its elements have moved
   */
  void sendReceive(Buffer send, int destination, Buffer receive, int source, int tag);

  /**
   * Copies the root's bytes to all ranks, whatever their number, such as a checkpoint or a
   * configuration. Two calls of this communicator: the number, then the bytes.
   *
   * @param bytes the root's, up to 2 GiB; ignored and may be null elsewhere
   * @param root the rank that has the bytes
   * @return the root's array itself on the root, a new array elsewhere
   * @throws IllegalArgumentException on every rank if the root has given null
   */
  default byte[] broadcast(byte[] bytes, int root) {
    boolean own = rank() == root;
    long[] length = {!own ? 0 : bytes == null ? -1 : bytes.length};
    broadcast(LongBuffer.wrap(length), root);
    if (length[0] < 0) {
      throw new IllegalArgumentException(
          "the root has nothing to broadcast: bytes=null, root=" + root + ", rank=" + rank());
    }
    byte[] result = own ? bytes : new byte[Math.toIntExact(length[0])];
    broadcast(ByteBuffer.wrap(result), root);
    return result;
  }

  /**
   * Copies the root's numbers to all ranks.
   *
   * @param data the source on the root, the target elsewhere; the same length on all ranks
   * @param root the rank that has the numbers
   */
  default void broadcast(float[] data, int root) {
    broadcast(FloatBuffer.wrap(Objects.requireNonNull(data, "data")), root);
  }

  /**
   * Gives every rank the bytes of all ranks, which may differ in number. One call of this
   * communicator for the numbers, and if there are bytes one for them; if they are many, one for
   * each rank that has some.
   *
   * @param bytes this rank's, 0 bytes to 2 GiB
   * @return an array for each rank, in rank order
   */
  default List<byte[]> allGather(byte[] bytes) {
    long[] lengths = numbers(Objects.requireNonNull(bytes, "bytes").length);
    long longest = Arrays.stream(lengths).max().getAsLong();
    if (longest == 0) {
      return Collections.nCopies(size(), bytes.clone());
    }
    List<byte[]> all = new ArrayList<>();
    if (longest * size() <= 1 << 20) { // padding costs less than a call for each rank
      ByteBuffer padded = ByteBuffer.allocate((int) longest * size());
      allGather(ByteBuffer.wrap(Arrays.copyOf(bytes, (int) longest)), padded);
      for (int rank = 0; rank < size(); rank++) {
        int from = rank * (int) longest;
        all.add(Arrays.copyOfRange(padded.array(), from, from + (int) lengths[rank]));
      }
      return all;
    }
    for (int rank = 0; rank < size(); rank++) {
      byte[] part = rank == rank() ? bytes.clone() : new byte[(int) lengths[rank]];
      if (part.length > 0) {
        broadcast(ByteBuffer.wrap(part), rank);
      }
      all.add(part);
    }
    return all;
  }

  /**
   * Gives the root the bytes of all ranks, which may differ in number. One call of this
   * communicator for the numbers, and then a message from each other rank that has some; if they
   * are many, messages of at most 64 MiB, and a barrier before each, so that no rank waits longer
   * than one of them takes.
   *
   * @param bytes this rank's, 0 bytes to 2 GiB
   * @param root the rank that receives, the same on all ranks
   * @return on the root an array for each rank, in rank order; an empty list elsewhere
   * @throws MismatchedCallException if the ranks give different roots; the communicator can be used
   *     as before
   */
  default List<byte[]> gather(byte[] bytes, int root) {
    if (root < 0 || root >= size()) {
      throw new IllegalArgumentException("no such rank: root=" + root + ", size=" + size());
    }
    long[] numbers = numbers(Objects.requireNonNull(bytes, "bytes").length, root);
    long total = 0;
    for (int rank = 0; rank < size(); rank++) {
      total += numbers[2 * rank];
      long other = numbers[2 * rank + 1];
      if (other != root) {
        throw new MismatchedCallException(
            "the ranks gather bytes at different roots: rank=%s, root=%s, but root=%s on rank %s"
                .formatted(rank(), root, other, rank));
      }
    }
    boolean atRoot = rank() == root;
    long most = 1 << 26; // of a message
    List<byte[]> all = new ArrayList<>();
    for (int rank = 0; rank < size(); rank++) {
      int length = (int) numbers[2 * rank];
      boolean own = rank == rank();
      byte[] part = own ? bytes : atRoot ? new byte[length] : null;
      for (long from = 0; rank != root && from < length; from += most) {
        if (total > 1 << 20) {
          barrier(); // otherwise the last rank waits in its message for those of all before it
        }
        int count = (int) Math.min(most, length - from);
        if (own) {
          send(ByteBuffer.wrap(part, (int) from, count), root, 0);
        } else if (atRoot) {
          receive(ByteBuffer.wrap(part, (int) from, count), rank, 0);
        }
      }
      if (atRoot) {
        all.add(own ? bytes.clone() : part);
      }
    }
    return all;
  }

  private long[] numbers(long... own) {
    long[] all = new long[own.length * size()];
    allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    return all;
  }

  /**
   * {@return whether a condition holds on any rank, such as a request to stop; the same on all}
   *
   * @param value this rank's
   */
  default boolean any(boolean value) {
    return reduce(value ? 1 : 0, ReduceOp.MAX) != 0;
  }

  /**
   * {@return whether a condition holds on all ranks; the same on all ranks}
   *
   * @param value this rank's
   */
  default boolean all(boolean value) {
    return reduce(value ? 1 : 0, ReduceOp.MIN) != 0;
  }

  /**
   * {@return the sum of a number of each rank, such as a count of rows; the same on all ranks}
   * Wraps around.
   *
   * @param value this rank's
   */
  default long sum(long value) {
    return reduce(value, ReduceOp.SUM);
  }

  private long reduce(long value, ReduceOp op) {
    long[] result = {value};
    allReduce(LongBuffer.wrap(result), op);
    return result[0];
  }

  /**
   * {@return the greatest of a number of each rank, by {@link Math#max(double, double)}: NaN if one
   * is NaN; the same on all ranks} {@link GradientSync#mean} averages one.
   *
   * @param value this rank's
   */
  default double max(double value) {
    return reduce(value, ReduceOp.MAX);
  }

  /**
   * {@return the least of a number of each rank, by {@link Math#min(double, double)}: NaN if one is
   * NaN; the same on all ranks}
   *
   * @param value this rank's
   */
  default double min(double value) {
    return reduce(value, ReduceOp.MIN);
  }

  private double reduce(double value, ReduceOp op) {
    double[] result = {value};
    allReduce(DoubleBuffer.wrap(result), op);
    return result[0];
  }

  /**
   * Splits the ranks into groups. Collective.
   *
   * @param color ranks with the same color form a group; a rank with a negative color joins none
   * @param key determines the order of the ranks in a group; ranks with equal keys keep this
   *     communicator's order
   * @return the new communicator, which the caller closes, or null for a negative color
   */
  Communicator split(int color, int key);

  /**
   * {@return a new communicator of the same ranks, which the caller closes} Its calls are
   * independent of this one's. Collective.
   */
  default Communicator duplicate() {
    return split(0, rank());
  }

  /**
   * Leaves the communicator. Not collective: it waits for a running call of another thread of this
   * rank, but not for other ranks. Ranks that wait for this one in a call throw a {@link
   * RankLostException}. A second call does nothing.
   */
  @Override
  void close();
}

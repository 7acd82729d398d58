package org.gradientsync;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.time.Duration;

/**
 * Who takes part, and small exchanges of host memory between them: the control plane. Gradients go
 * through {@link GradientSync}.
 *
 * <p>Data is a {@code java.nio} buffer: the elements between position and limit take part, and both
 * stay where they are. A {@code FloatBuffer}, {@code DoubleBuffer}, {@code IntBuffer}, {@code
 * LongBuffer}, {@code ShortBuffer} or {@code ByteBuffer} serves, on the heap or direct; arrays go
 * through {@code wrap}.
 *
 * <p>A collective must be called by every rank of the communicator, in the same order and with the
 * same type and counts; ranks that differ all get a {@link MismatchedCallException} that shows who
 * called what, and no buffer is changed. Ranks that wait for each other in different calls get it,
 * too, within a second, and that breaks the communicator. A rank that does not come within the
 * {@linkplain #timeout() time-out} ends the call with a {@link RankLostException} that names it,
 * and breaks the communicator.
 *
 * <p>Calls from several threads on one communicator are carried out one after the other; which
 * comes first is the caller's affair, and must be the same on all ranks.
 */
public interface Communicator extends AutoCloseable {
  /** The largest tag that {@link #send} and {@link #receive} take. */
  int MAX_TAG = 2047;

  /**
   * This rank's number.
   *
   * @return from 0 to size - 1
   */
  int rank();

  /**
   * The number of ranks.
   *
   * @return 1 or more
   */
  int size();

  /**
   * This rank's number among the ranks of its node, in rank order.
   *
   * @return from 0 to localSize - 1
   */
  int localRank();

  /**
   * The number of ranks on this rank's node.
   *
   * @return 1 or more
   */
  int localSize();

  /**
   * The number of nodes that the ranks of this communicator run on.
   *
   * @return 1 or more
   */
  int nodeCount();

  /**
   * How long a call waits for another rank.
   *
   * @return more than zero
   */
  Duration timeout();

  /** Returns on each rank after every rank has called it. Sub-groups come from {@link #split}. */
  void barrier();

  /**
   * Makes each element the reduction over all ranks, in place, with the bits that {@link ReduceOp}
   * promises.
   *
   * @param data the same count on all ranks
   * @param type the element type, which must be one that the buffer holds
   * @param op the reduction
   */
  void allReduce(Buffer data, DataType type, ReduceOp op);

  /**
   * {@link #allReduce(Buffer, DataType, ReduceOp)} of a buffer whose class says its type.
   *
   * @param data a float, double, int or long buffer
   * @param op the reduction
   * @throws IllegalArgumentException for other buffers, whose type must be given
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
   * Copies root's data to all ranks.
   *
   * @param data the same type and count on all ranks
   * @param root the rank that has the data
   */
  void broadcast(Buffer data, int root);

  /**
   * Puts all ranks' data one after the other, in rank order, on every rank.
   *
   * @param send the same type and count on all ranks
   * @param receive size times as many elements; must not overlap send
   */
  void allGather(Buffer send, Buffer receive);

  /**
   * Reduces over all ranks, and leaves each rank with its own part of the result.
   *
   * @param send size times as many elements as receive, rank 0's part first; not changed
   * @param receive this rank's part
   * @param type the element type, which must be one that the buffers hold
   * @param op the reduction
   */
  void reduceScatter(Buffer send, Buffer receive, DataType type, ReduceOp op);

  /**
   * Puts all ranks' data one after the other, in rank order, on the root.
   *
   * @param send the same type and count on all ranks
   * @param receive on the root, size times as many elements; ignored and may be null elsewhere
   * @param root the rank that receives
   */
  void gather(Buffer send, Buffer receive, int root);

  /**
   * Gives each rank its part of the root's data.
   *
   * @param send on the root, size times as many elements as receive; ignored and may be null
   *     elsewhere
   * @param receive the same type and count on all ranks
   * @param root the rank that has the data
   */
  void scatter(Buffer send, Buffer receive, int root);

  /**
   * Sends to one rank. Synchronous: it returns when the other rank has received, so two ranks that
   * both send first wait for each other, and both throw; {@link #sendReceive} is for that.
   *
   * @param data the elements to send
   * @param destination another rank
   * @param tag from 0 to {@link #MAX_TAG}; the receiver gives the same
   * @throws MismatchedCallException on both ranks if the receiver expects another type or count; on
   *     all ranks, and breaking the communicator, if the receiver waits for this rank in another
   *     call
   */
  void send(Buffer data, int destination, int tag);

  /**
   * Receives from one rank.
   *
   * @param data where the elements go; exactly as many as are sent
   * @param source another rank
   * @param tag from 0 to {@link #MAX_TAG}; the sender gives the same
   * @throws MismatchedCallException on both ranks if the sender has another type or count; on all
   *     ranks, and breaking the communicator, if the sender waits for this rank in another call
   */
  void receive(Buffer data, int source, int tag);

  /**
   * Sends to one rank and receives from one, the same or another, at the same time: the step of a
   * halo exchange.
   *
   * @param send the elements to send
   * @param destination the rank that receives them
   * @param receive where the elements of source go; must not overlap send
   * @param source the rank that sends them
   * @param tag from 0 to {@link #MAX_TAG}, the same on all ranks concerned
   * @throws MismatchedCallException as for {@link #send} and {@link #receive}
   */
  void sendReceive(Buffer send, int destination, Buffer receive, int source, int tag);

  /**
   * Divides the ranks into groups. Collective.
   *
   * @param color ranks with the same color come into the same group; a rank with a negative color
   *     into none
   * @param key orders the ranks of a group; equal keys keep this communicator's order
   * @return the new communicator, which the caller closes, or null for a negative color
   */
  Communicator split(int color, int key);

  /**
   * Another communicator of the same ranks, whose calls do not mix with this one's. Collective.
   *
   * @return the new communicator, which the caller closes
   */
  default Communicator duplicate() {
    return split(0, rank());
  }

  /**
   * Leaves the communicator. Not collective: it waits for a call that another thread of this rank
   * is in, but not for other ranks; ranks that still wait for this one in a call get a {@link
   * RankLostException}. A second call does nothing.
   */
  @Override
  void close();
}

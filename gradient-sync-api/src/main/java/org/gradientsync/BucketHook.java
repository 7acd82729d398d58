package org.gradientsync;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.List;

/**
 * What {@link GradientBuckets} do with a full bucket in place of its average, for example to send
 * fewer bytes. See {@link GradientBuckets.Builder#hook}.
 *
 * <pre>{@code
 * BucketHook exact = bucket -> bucket.sync().average(bucket.gradients());
 * }</pre>
 *
 * <p>A hook that keeps state, such as what it has not sent yet, belongs to one {@link
 * GradientBuckets} of one rank: do not share it. Calls come one at a time, in the order of the
 * buckets, but not always on the same thread. All methods but {@link #average} do nothing unless a
 * hook overrides them.
 *
 * <p>The buckets with a hook split a sync of their own for it, which takes the memory that its
 * reducer needs. What the ranks tell each other with the averages, such as {@link
 * GradientBuckets#stopRequested}, takes a small average more in each step. Averages use one
 * communication stream. The calls of two syncs are not compared with each other: if a rank makes
 * another call in the place of a step, such as {@link GradientBuckets#discard}, the ranks may throw
 * at the time-out only.
 *
 * <p>The package {@code org.gradientsync.hooks} has hooks to use as they are.
 */
@FunctionalInterface
public interface BucketHook {
  /**
   * Replaces this rank's gradients in a full bucket by the averages over all ranks, or by what
   * stands for them. Collective: all ranks call it for the same buckets in the same order. All
   * ranks must end with the same bits.
   *
   * <p>It is called where the bucket would be averaged: on the communication thread if the reducer
   * blocks the host and the buckets overlap, and otherwise within {@link GradientBuckets#ready} or
   * {@link GradientBuckets#finish}. On a GPU the bucket's buffers belong to the communication
   * stream, which waits for the gradients. The hook may return when it has enqueued its work there.
   *
   * <p>An exception ends the step as that of an average does, and closes {@link FullBucket#sync},
   * so that the other ranks throw a {@link RankLostException} instead of waiting. A hook that
   * neither returns nor makes a call for about a quarter longer than the time-out of calls is
   * interrupted until it ends, and the step ends likewise. What the hook averages in the background
   * is complete before the step goes on.
   *
   * @param bucket the bucket; the same object in each step, until {@link GradientBuckets#rebuild}
   */
  void average(FullBucket bucket);

  /**
   * Called before the memory that the hook has allocated for a bucket is closed, by {@link
   * GradientBuckets#rebuild} and {@link GradientBuckets#close}: a hook that keeps state there takes
   * it out. Not collective. What it throws, {@code rebuild} or {@code close} throws.
   *
   * @param bucket a bucket that is not used after this call
   */
  default void release(FullBucket bucket) {}

  /**
   * Called between steps when a {@link LossScaler} has changed the scale of the gradients: a hook
   * that adds gradients of earlier steps to the next ones multiplies them.
   *
   * @param factor the new scale divided by the one before
   */
  default void rescale(double factor) {}

  /**
   * Writes this rank's state for a checkpoint. Call it between steps.
   *
   * @param out receives the state
   * @throws IOException if it cannot be written
   */
  default void save(DataOutput out) throws IOException {}

  /**
   * Continues from what {@link #save} has written on the same rank. Call it before the first step.
   *
   * @param in has the state
   * @throws IOException if it cannot be read, or is that of another hook
   */
  default void load(DataInput in) throws IOException {}

  /** A bucket whose gradients are ready. For the library, which has the only implementation. */
  interface FullBucket {
    /**
     * {@return the bucket's index, in the order in which buckets are averaged, from 0 to {@link
     * GradientBuckets#bucketCount} - 1}
     */
    int index();

    /**
     * {@return all gradients of the bucket, with zeros between parameters, in a buffer of the
     * communication stream; do not close it} Leave these zero: norms and checks for what is not
     * finite see them, too.
     */
    DeviceBuffer gradients();

    /**
     * {@return the parameters of the bucket, one or more, in the order of their elements in {@link
     * #gradients}; always the same list}
     */
    List<Part> parts();

    /**
     * {@return the sync for the hook's own calls, a part of the buckets' sync with the same ranks,
     * which the buckets close} In a hook, collective calls of the buckets' own sync, and calls that
     * begin or end a step of the buckets, throw an {@link IllegalStateException}. Do not wait in a
     * hook for another thread that makes them: it waits for the hook.
     */
    GradientSync sync();

    /**
     * {@return a new buffer filled with zeros, which the buckets close, at {@link
     * GradientBuckets#rebuild} or {@link GradientBuckets#close}} It belongs to the communication
     * stream, so that the hook's calls of {@link #sync} run in the order of the bucket's. Allocate
     * once, in the first call with this bucket, and keep the buffer.
     *
     * @param type the element type
     * @param count the number of elements, 0 or more
     * @throws GradientSyncException if there is not enough memory
     */
    DeviceBuffer allocate(DataType type, long count);
  }

  /**
   * A parameter in a bucket.
   *
   * @param index the parameter's index in the list given to {@link GradientBuckets#builder}
   * @param parameter the parameter
   * @param gradient its gradient: a view into the bucket, of the communication stream; do not close
   */
  record Part(int index, Parameter parameter, DeviceBuffer gradient) {}
}

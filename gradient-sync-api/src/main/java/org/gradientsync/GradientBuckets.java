package org.gradientsync;

import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;

/**
 * The gradients of a model, packed into buckets that are averaged while the backward pass still
 * computes the next ones.
 *
 * <pre>{@code
 * try (GradientBuckets buckets = GradientBuckets.builder(sync, parameters).build()) {
 *   buckets.broadcast(weights, 0); // the same start on all ranks
 *   for (...) {
 *     forward();
 *     for (int i = parameters.size() - 1; i >= 0; i--) {
 *       backward(i, buckets.gradient(i)); // writes or enqueues the gradient
 *       buckets.ready(i);
 *     }
 *     buckets.finish();
 *     update(weights, buckets);
 *   }
 * }
 * }</pre>
 *
 * <p>Gradients are views into the buckets, so nothing is copied. A bucket whose last gradient is
 * ready is averaged as soon as the buckets before it are under way; so all ranks average in the
 * same order, whatever the order in which their gradients become ready. On a GPU it is done on
 * streams of its own. Where the reducer blocks the host, a thread of its own does it; the sync's
 * other calls, and those of {@link GradientSync#communicator()}, then wait until it has nothing to
 * do. Calls in the middle of a step have their place in the order: the same buckets must be full on
 * all ranks when they come.
 *
 * <p>All ranks build their buckets alike, and finish the same number of steps, but for {@link
 * #join}. For use by one thread at a time, but for {@link #ready}. After an exception of {@link
 * #ready} or {@link #finish} that comes from averaging, every further call throws: close the
 * buckets. The sync can be used again if it can after the same exception of {@link
 * GradientSync#average}: new buckets can be built, say, after a {@link NotFiniteException}.
 *
 * <p>The scheme (buckets in reverse order, a small first one, order rebuilt once) is that of Li et
 * al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
 */
public abstract class GradientBuckets implements AutoCloseable {
  /** What {@link GradientBuckets#finish} does with gradients that are not ready. */
  public enum Missing {
    /** It throws, naming them: usually a part of the model was forgotten. */
    REFUSE,
    /** They are zero: parts of the model are not used in every step, or by every rank. */
    ZERO
  }

  /** For the library, which has the only implementation. */
  protected GradientBuckets() {}

  /**
   * Buckets for a model.
   *
   * @param sync whose ranks average; open as long as the buckets are
   * @param parameters the model's, in the order of the forward pass, at least one, each with a name
   *     of its own; the same names, counts and types on all ranks
   * @return a builder
   * @throws IllegalArgumentException if there are none
   */
  public static Builder builder(GradientSync sync, List<Parameter> parameters) {
    return Objects.requireNonNull(sync, "sync").newBuckets(parameters);
  }

  /**
   * Where a gradient goes. It belongs to the stream that computes, see {@link Builder#computedOn}.
   * Its elements hold the average after {@link #finish} until the next step writes them.
   *
   * @param parameter its number in the list, from 0
   * @return a view, which ends with {@link #rebuild} or {@link #close}; if it is closed before, the
   *     next call makes another
   */
  public abstract DeviceBuffer gradient(int parameter);

  /**
   * The number of parameters.
   *
   * @return 1 or more
   */
  public abstract int size();

  /**
   * The number of buckets.
   *
   * @return 1 or more
   */
  public abstract int bucketCount();

  /**
   * Which bucket a gradient lies in.
   *
   * @param parameter its number in the list, from 0
   * @return from 0, in the order in which buckets are averaged
   */
  public abstract int bucketOf(int parameter);

  /**
   * Says that a gradient has been written, or that what writes it has been enqueued on the stream
   * that computes. The last one of a bucket starts the bucket's average, so write nothing more into
   * it, and enqueue nothing that does, until the average is there: ranks could get different bits.
   * Returns without waiting for other ranks. Within {@link #noSync} it starts nothing. Several
   * threads may call it at a time, where several compute gradients. All have returned before {@link
   * #finish} is called; those that come after {@link #close} throw.
   *
   * @param parameter its number in the list, from 0
   * @throws IllegalStateException if it has been ready before in this step
   */
  public abstract void ready(int parameter);

  /**
   * Ends the step: what is enqueued later on the stream that computes finds the averages. Does not
   * block the host where the reducer does not. Within {@link #noSync} it does nothing.
   *
   * @throws IllegalStateException if gradients are not ready and {@link Missing#REFUSE} was chosen:
   *     with their names. The other ranks wait for them in vain, so the buckets are broken, unless
   *     none was ready at all
   * @throws GradientSyncException what an average of this step has thrown
   */
  public abstract void finish();

  /**
   * Ends the step as {@link #finish()} does, and awaits bucket after bucket, so that what is done
   * with the first averages need not wait for the last.
   *
   * @param averaged called for each parameter's number, in the order of the buckets: what it
   *     enqueues on the stream that computes finds this parameter's average
   */
  public abstract void finish(IntConsumer averaged);

  /** An end for {@link #noSync}. */
  public interface NoSync extends AutoCloseable {
    /** Lets gradients be averaged again. */
    @Override
    void close();
  }

  /**
   * For gradient accumulation: until it is closed, {@link #ready} and {@link #finish} start
   * nothing. The backward passes add to the gradients, in these steps and the one after, whose sum
   * is averaged. A gradient that was ready in any of them is not missing.
   *
   * @return to be closed before the last of the steps, best by try-with-resources
   * @throws IllegalStateException in the middle of a step
   */
  public abstract NoSync noSync();

  /**
   * Copies one rank's parameters to all ranks. Collective.
   *
   * @param values the parameters themselves, of the types and counts given to the builder, as
   *     buffers of the sync
   * @param root the rank that has them
   * @throws IllegalArgumentException if they are not the model's
   */
  public abstract void broadcast(List<? extends DeviceBuffer> values, int root);

  /**
   * Puts the gradients into buckets anew, in the order in which they became ready on rank 0 in the
   * first step. Gradients lose their values. Collective, after the first step's {@link #finish} and
   * the use of what it averaged; no rank may have come to {@link #join} before.
   *
   * @return whether anything has changed; then gradients are to be asked for again, and earlier
   *     views are closed
   * @throws IllegalStateException if no step has been finished yet, in the middle of a step, or
   *     within {@link #noSync}
   */
  public abstract boolean rebuild();

  /**
   * Takes part in the other ranks' steps without data of its own, with gradients of zero, until all
   * ranks have come here: for ranks with fewer steps than others. Averages are over all ranks all
   * the time. Each rank calls it once, after its last step.
   *
   * @param update called after each step of the others', when the averages are there: what keeps
   *     this rank's parameters the same as theirs
   * @return how many steps that were
   * @throws IllegalStateException if not built with {@link Builder#unevenSteps}, in the middle of a
   *     step, or within {@link #noSync}
   */
  public abstract long join(Runnable update);

  /**
   * Gives the buckets' memory back. Not collective. In the middle of a step whose averages block
   * the host, they are given up, which breaks the sync. A second call does nothing.
   */
  @Override
  public abstract void close();

  /** How gradients are packed and averaged. All ranks build alike. */
  public abstract static class Builder {
    /** For the library, which has the only implementation. */
    protected Builder() {}

    /**
     * When a bucket is closed: as soon as its gradients take this many bytes.
     *
     * @param newBytes 1 or more; 25 MiB if not set
     * @return this builder
     */
    public abstract Builder bucketBytes(long newBytes);

    /**
     * When the first bucket is closed, which is smaller so that averaging begins early.
     *
     * @param newBytes 1 or more; 1 MiB if not set
     * @return this builder
     */
    public abstract Builder firstBucketBytes(long newBytes);

    /**
     * Whether buckets are averaged during the backward pass, or all of them in {@link #finish}, on
     * the stream that computes.
     *
     * @param newOverlap true if not set
     * @return this builder
     */
    public abstract Builder overlap(boolean newOverlap);

    /**
     * What is done with gradients that are not ready at the end of a step.
     *
     * @param newMissing {@link Missing#REFUSE} if not set
     * @return this builder
     */
    public abstract Builder missing(Missing newMissing);

    /**
     * Lets ranks have different numbers of steps, see {@link GradientBuckets#join}. Costs one small
     * kernel or copy in each step.
     *
     * @return this builder
     */
    public abstract Builder unevenSteps();

    /**
     * The stream on which gradients are computed and used.
     *
     * @param stream a stream of the sync's device; the device's own if not set
     * @return this builder
     */
    public abstract Builder computedOn(Stream stream);

    /**
     * Builds the buckets. Collective.
     *
     * @return buckets that the caller closes before the sync; their contents are zero
     * @throws MismatchedCallException if the ranks' parameters or options differ: on every rank,
     *     naming the first parameter that does
     * @throws UnavailableException if a rank has not enough memory, or a stream of another device:
     *     on every rank
     * @throws IllegalArgumentException if two parameters have the same name, or if there would be
     *     more than 500 buckets: on every rank
     */
    public abstract GradientBuckets build();
  }
}

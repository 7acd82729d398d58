package org.gradientsync;

import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.function.ObjIntConsumer;

/**
 * The gradients of a model, in buckets. The averages of full buckets overlap with the backward
 * pass: write or enqueue each {@link #gradient}, call {@link #ready}, in any order, and at the end
 * of the step {@link #finish}.
 *
 * <p>Gradients are views into the buckets, so nothing is copied. When a bucket's last gradient is
 * ready, its average starts as soon as the averages of all buckets before it have started, so in
 * the same order on all ranks. On a GPU, averages run on streams of their own. If the reducer
 * blocks the host, a communication thread runs them; the sync's other calls, and those of {@link
 * GradientSync#communicator()}, then wait until that thread is idle. A call in the middle of a step
 * is part of the order, too: the same buckets must be full on all ranks when they make it.
 *
 * <p>All ranks build their buckets with the same options and, unless they use {@link #join}, finish
 * the same number of steps. Only one thread at a time may use them, except for {@link #ready}.
 * Parameters have indexes from 0 on, in the order of the builder's list; for another index, methods
 * throw an {@link IndexOutOfBoundsException}. A step begins with the first {@link #ready} and ends
 * with {@link #finish}. Calls that belong between steps throw an {@link IllegalStateException} in
 * the middle of one, and {@link #update}, {@link #clipByGlobalNorm}, {@link #isFinite}, {@link
 * #rebuild} and {@link #join} within {@link #noSync}, too. So do calls for sharded buckets if not
 * built with {@link Builder#sharded}.
 *
 * <p>If {@link #ready} or {@link #finish} throws because an average failed, every further call
 * throws: close the buckets. The sync remains usable as after {@link GradientSync#average}. With a
 * reducer that does not block the host, {@link #finish} throws a {@link NotFiniteException} after
 * the step is complete, and the buckets remain usable. Exceptions of an update or another function
 * of the program break the buckets, too, and are rethrown. If the update of sharded buckets throws
 * on some ranks only, or in different buckets, the other ranks throw, too, and the sync is broken.
 */
public abstract class GradientBuckets implements AutoCloseable {
  /** How {@link #finish} treats gradients that are not ready. */
  public enum Missing {
    /** It throws and names them: usually the program has forgotten a part of the model. */
    REFUSE,
    /** It sets them to zero: for models in which some steps or ranks use only some parameters. */
    ZERO,
    /**
     * It sets them to zero, and does not hand a parameter to the update that no rank had ready, so
     * that momentum and weight decay leave it alone: for models with experts. It waits for all
     * averages before the first update, on the host, too. With {@link Builder#sharded} or a hook,
     * the flags take a small average of their own. See {@link #isSkipped}.
     */
    SKIP
  }

  /** What happens when a rank has no more data while others have, see {@link #join}. */
  public enum Uneven {
    /** The other ranks go on, and the rank takes part in their steps. */
    JOIN,
    /** All stop after the step in which the first has none: {@link #stopRequested} is then true. */
    STOP
  }

  /** By what the sums of gradients are divided. */
  public enum Divisor {
    /** By the number of ranks. */
    ALL_RANKS,
    /**
     * By the number of ranks that contributed: not in {@link #join}, and with {@link Missing#SKIP}
     * only those that had the gradient ready.
     */
    CONTRIBUTING_RANKS
  }

  /**
   * This rank's part of a sharded bucket: elements from {@code rank * count} on of {@code size *
   * count}. Parameters lie in a bucket one after the other, so a shard may have parts of several,
   * or none. An update either treats all elements alike, also the zeros between parameters, or goes
   * through the {@link #pieces}. The buffers belong to the compute stream; do not close them.
   *
   * @param gradient this rank's gradients; averages after {@link #finish()}
   * @param weight this rank's weights, in the same order
   * @param pieces the parts of parameters that it has, in the order of their elements, none of them
   *     empty; each parameter at most once. The list cannot be changed
   */
  public record Shard(DeviceBuffer gradient, DeviceBuffer weight, List<Piece> pieces) {}

  /**
   * The part of a parameter that lies in the buffers of a {@link Shard}.
   *
   * @param parameter the parameter's index
   * @param parameterOffset the parameter's first element that lies there, from 0
   * @param shardOffset the shard's element where it lies, from 0
   * @param count the number of elements, 1 or more
   */
  public record Piece(int parameter, long parameterOffset, long shardOffset, long count) {}

  /** Updates the weights of one shard. */
  @FunctionalInterface
  public interface ShardUpdate {
    /**
     * Updates the weights, or enqueues work on the compute stream that does.
     *
     * @param gradient the averages
     * @param weight the weights to change
     * @param shard the index in {@link #shards}
     */
    void update(DeviceBuffer gradient, DeviceBuffer weight, int shard);
  }

  /** For the library, which has the only implementation. */
  protected GradientBuckets() {}

  /**
   * {@return a builder of buckets for a model}
   *
   * @param sync the sync whose ranks average; must stay open until the buckets are closed
   * @param parameters in the order of the forward pass, with distinct names, and with the same
   *     names, counts and types on all ranks; may be none on all ranks
   */
  public static Builder builder(GradientSync sync, List<Parameter> parameters) {
    return Objects.requireNonNull(sync, "sync").newBuckets(parameters);
  }

  /**
   * {@return the buffer for a parameter's gradient: a view, valid until {@link #rebuild} or {@link
   * #close}, and a new one after its own close} It belongs to the {@linkplain Builder#computedOn
   * compute stream}. After {@link #finish} it holds the average, until the next step overwrites it;
   * in sharded buckets only where it belongs to this rank's {@link #shards}.
   *
   * @param parameter the parameter's index
   */
  public abstract DeviceBuffer gradient(int parameter);

  /**
   * {@return the buffer for a parameter's weights, in sharded buckets, at first zeros; a view as of
   * {@link #gradient}} Write the first weights into it, or those of a checkpoint, and {@link
   * #broadcast} them; later only {@link #finish(ShardUpdate)} and {@link #update} change it.
   *
   * @param parameter the parameter's index
   */
  public abstract DeviceBuffer weight(int parameter);

  /** {@return this rank's part of each bucket, in sharded buckets; always the same list} */
  public abstract List<Shard> shards();

  /** {@return the number of parameters, 0 or more} */
  public abstract int size();

  /** {@return the number of buckets; 0 only without parameters and {@link Builder#unevenSteps}} */
  public abstract int bucketCount();

  /**
   * {@return the index of a gradient's bucket, from 0, in the order in which buckets are averaged}
   *
   * @param parameter the parameter's index
   */
  public abstract int bucketOf(int parameter);

  /**
   * Marks a gradient as ready: it has been written, or the work that writes it has been enqueued on
   * the compute stream, and nothing writes to it until the average is there; otherwise ranks may
   * get different bits. The last gradient of a bucket starts its average. Waits for no rank.
   * Several threads may call it concurrently; all calls must have returned before {@link #finish}.
   *
   * @param parameter the parameter's index
   * @throws IllegalStateException if the gradient is ready already, or after {@link #close}
   */
  public abstract void ready(int parameter);

  /**
   * Ends the step: work enqueued later on the compute stream finds the averages. It blocks the host
   * only if the reducer does.
   *
   * @throws IllegalStateException with {@link Missing#REFUSE} if gradients are not ready: it names
   *     them, and breaks the buckets, as the others wait, unless none at all was ready
   * @throws GradientSyncException if an average of this step has failed
   */
  public abstract void finish();

  /**
   * Ends the step as {@link #finish()} does, but waits for one bucket after the other, so that work
   * on the first averages need not wait for the last. Not for sharded buckets.
   *
   * @param averaged called with the index of each parameter that is not {@linkplain #isSkipped
   *     skipped}, in the order of the buckets; what it enqueues finds the average
   */
  public abstract void finish(IntConsumer averaged);

  /**
   * Ends a step of sharded buckets: the same as {@link #finish()} and {@link #update}, but a
   * bucket's update waits for this bucket's averages only, and its gather overlaps with the next
   * updates. Work enqueued later on the compute stream finds the new weights in {@link #weight}.
   *
   * @param update called with each shard, in the order of the buckets, unless all its parameters
   *     are {@linkplain #isSkipped skipped}; leave the {@link Shard#pieces} of skipped ones alone
   */
  public abstract void finish(ShardUpdate update);

  /**
   * Updates the weights of sharded buckets after {@link #finish()}, where something needs all
   * averages first. To skip the update, leave it out on all ranks. Collective.
   *
   * @param update called as by {@link #finish(ShardUpdate)}
   * @throws GradientSyncException if a gather of weights has failed
   */
  public abstract void update(ShardUpdate update);

  /**
   * {@return whether no rank had a parameter's gradient ready in the last step that {@link #finish}
   * averaged, nor within {@link #noSync} before it, so that an update must leave it alone} Waits
   * for that step's averages. The same on all ranks, without communication. False without {@link
   * Missing#SKIP}, before the first step, and after {@link #discard} or {@link #rebuild}.
   *
   * @param parameter the parameter's index
   */
  public abstract boolean isSkipped(int parameter);

  /**
   * {@return whether all ranks are to stop} True on all ranks after the same {@link #finish}: that
   * of the first step whose last bucket became full after {@link GradientSync#requestStop}, or a
   * {@linkplain GradientSync.Builder#stopOnSignal signal}, on any rank; with {@link Uneven#STOP}
   * also after the step in which a rank had no more data; ask after each step then, because that
   * rank takes part in no other. Stays true. Steps within {@link #noSync} do not change it; a step
   * that {@link #discard} ends may, on all ranks. The step's averages carry the request, so this
   * call waits for them; sharded buckets without {@link Missing#SKIP} make a small collective call.
   */
  public abstract boolean stopRequested();

  /**
   * Scales all gradients alike so that their norm, the square root of the sum of the squares of all
   * averages, is at most a maximum. Call it after {@link #finish()} and before the update, in
   * sharded buckets collectively. If the norm is more than the maximum, but finite, each gradient
   * is multiplied by max / norm, in double, and rounded to its type: a 16-bit one to FLOAT32 first.
   * Waits for the averages and computes in double on their device. All ranks of a job get the same
   * bits; in host memory, or with other ranks, buckets or shards, the last ones may differ.
   *
   * @param max the largest norm, more than 0; infinity to get the norm only
   * @return the norm before scaling; if it is NaN or infinite, gradients are not scaled
   * @throws IllegalArgumentException if max is not more than 0
   */
  public abstract double clipByGlobalNorm(double max);

  /**
   * {@return whether all averages of the step are finite, neither NaN nor infinite; the same on all
   * ranks} Call it after {@link #finish()}; a {@link LossScaler} does. Waits for the averages. In
   * sharded buckets it is collective, except after {@link #clipByGlobalNorm} in this step, unless
   * that norm is infinite and the model has FLOAT64 parameters, or after a first call.
   */
  public abstract boolean isFinite();

  /** Tells a hook that a {@link LossScaler} has multiplied its scale by a factor. */
  protected abstract void rescale(double factor);

  /** Ends {@link #noSync} when it is closed. */
  public interface NoSync extends AutoCloseable {
    /** Turns averaging on again. A second call does nothing. */
    @Override
    void close();
  }

  /**
   * {@return an object that turns averaging off for gradient accumulation: until it is closed,
   * before the last of the steps, {@link #ready} starts no averages and {@link #finish} does
   * nothing} The backward passes of these steps and of the next one add to the gradients, and that
   * one averages the sums. A gradient that was ready in any of these steps does not count as
   * missing. {@link #discard} throws the sums away.
   */
  public abstract NoSync noSync();

  /**
   * As {@link #noSync()}, around some steps: {@code noSync(() -> allButTheLast()); last()}.
   *
   * @param steps run at once, on the caller's thread; what it throws is thrown here
   */
  public void noSync(Runnable steps) {
    Objects.requireNonNull(steps, "steps");
    NoSync off = noSync();
    try {
      steps.run();
    } finally {
      off.close();
    }
  }

  /**
   * Gives the step up: forgets which gradients were ready since the last {@link #finish} outside of
   * {@link #noSync}, and sets them to zero. The weights of sharded buckets stay. All calls of
   * {@link #ready} must have returned. Within {@link #noSync} it concerns this rank only, and
   * averaging stays off. Otherwise it is collective, in the place of {@link #finish}, and takes as
   * long; if another rank finishes the step, all ranks throw at that rank's next call.
   *
   * @throws IllegalStateException within {@link #finish}; or with {@link Builder#unevenSteps}
   *     outside of {@link #noSync}, as ranks in {@link #join} use the averages
   * @throws MismatchedCallException if another rank makes another call
   * @throws GradientSyncException if an average of this step has failed; this breaks the buckets
   */
  public abstract void discard();

  /**
   * Copies one rank's parameters to all ranks. Collective.
   *
   * @param values buffers of the sync, of the parameters' types and counts
   * @param root the rank that has the values
   * @throws IllegalArgumentException if number, types or counts differ
   */
  public abstract void broadcast(List<? extends DeviceBuffer> values, int root);

  /**
   * Gathers a state of the optimizer, such as Adam's first moments, on one rank, for a checkpoint
   * that does not depend on the number of ranks. Needs memory for one bucket there. For sharded
   * buckets; collective, between steps.
   *
   * @param state one buffer for each of {@link #shards}, with as many elements, all of one type
   * @param root the rank that gets the state, the same on all ranks
   * @param values called on the root, in the order of the buckets, with each parameter's state, a
   *     buffer of the parameter's count that is valid during the call, and its index. What it
   *     throws is thrown on the root when all is gathered, and the ranks can go on
   * @throws IllegalArgumentException if buffers do not match the shards, or there is no such rank
   * @throws MismatchedCallException if the types of the ranks' buffers differ
   */
  public abstract void gatherState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values);

  /**
   * Gives each rank its part of a state that {@link #gatherState} gathered, with any number of
   * ranks and any bucket sizes. Collective; throws as that does.
   *
   * @param state as there, of any type, to be written; zero where there is no parameter
   * @param root the rank that has the state, the same on all ranks
   * @param values called as there, with a buffer to write a parameter's state to, at first zero. If
   *     it throws, the other ranks throw an {@link UnavailableException} that says so, and the
   *     ranks can go on; buckets before have been scattered
   */
  public abstract void scatterState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values);

  /**
   * Lays the buckets out anew, in the order in which the gradients became ready on rank 0 in the
   * first step. Gradients lose their values. Collective; not for sharded buckets. Call it after
   * that step, once the averages have been used, and before any rank joins.
   *
   * @return true if the layout has changed; the earlier views are then closed
   * @throws IllegalStateException if no step has been finished yet
   */
  public abstract boolean rebuild();

  /**
   * Takes part in the other ranks' steps with gradients of zero until all ranks have called it: for
   * ranks with fewer steps than others, in buckets built with {@link Builder#unevenSteps}. Each
   * rank calls it once, after its last step, also if {@link #stopRequested} has ended its loop.
   * Throws away what was ready within {@link #noSync}. With {@link Uneven#STOP} it takes part in
   * one step, after which the others stop; in none if {@link #stopRequested} is true.
   *
   * @param update called after each such step, to update this rank's parameters as the others do:
   *     all that are not {@linkplain #isSkipped skipped}
   * @return the number of steps in which it took part
   */
  public abstract long join(Runnable update);

  /**
   * Frees the buckets' memory. Not collective. In the middle of a step whose averages block the
   * host, it cancels them, which breaks the sync. A second call does nothing.
   *
   * @throws IllegalStateException if a hook or a listener closes them
   */
  @Override
  public abstract void close();

  /** Chooses how gradients are packed and averaged. All ranks choose the same options. */
  public abstract static class Builder {
    /** For the library, which has the only implementation. */
    protected Builder() {}

    /**
     * Sets the size at which a bucket is full.
     *
     * @param newBytes bytes, 1 or more; 25 MiB if not set
     * @return this builder
     * @throws IllegalArgumentException if it is less than 1
     */
    public abstract Builder bucketBytes(long newBytes);

    /**
     * Sets the size of the first bucket. Smaller than the others, so that averaging starts early.
     *
     * @param newBytes bytes, 1 or more; 1 MiB if not set
     * @return this builder
     * @throws IllegalArgumentException if it is less than 1
     */
    public abstract Builder firstBucketBytes(long newBytes);

    /**
     * {@return this builder} Without overlap, {@link #finish} averages.
     *
     * @param newOverlap whether averages overlap with the backward pass; true if not set
     */
    public abstract Builder overlap(boolean newOverlap);

    /**
     * {@return this builder}
     *
     * @param newMissing for gradients that are not ready; {@link Missing#REFUSE} if not set
     */
    public abstract Builder missing(Missing newMissing);

    /** {@return this builder, with {@link Uneven#JOIN}} */
    public Builder unevenSteps() {
      return unevenSteps(Uneven.JOIN);
    }

    /**
     * Allows ranks with different numbers of steps. It costs a small kernel or copy per step.
     *
     * @param newUneven what happens when the first rank has no more data
     * @return this builder
     */
    public abstract Builder unevenSteps(Uneven newUneven);

    /**
     * Chooses by what the sums of gradients are divided. With {@link Divisor#CONTRIBUTING_RANKS}
     * {@link #finish} waits for all averages first, on the host, too, and multiplies them in
     * double, rounded as {@link #clipByGlobalNorm} does. BFLOAT16 counts up to 256 ranks exactly.
     *
     * @param newDivisor {@link Divisor#ALL_RANKS} if not set
     * @return this builder
     */
    public abstract Builder divisor(Divisor newDivisor);

    /**
     * Uses a sharded optimizer. Each rank has the optimizer's state for its {@linkplain #shards
     * shards} only, 1/size of it, and updates their weights (ZeRO-1). Full buckets are
     * reduce-scattered during the backward pass, and the ranks gather the weights after the update,
     * which moves as much as averages do. The weights have the bits that they have without shards
     * if the update computes each element by itself. They are in the buckets, too, and take as much
     * memory as the gradients, padded to a multiple of size * 256 bytes. At most 250 buckets; not
     * with {@link #unevenSteps}.
     *
     * @return this builder
     */
    public abstract Builder sharded();

    /**
     * Calls a hook for each full bucket in place of its average, also for averages that {@link
     * #discard} ends. All ranks set one, of the same kind. Not with {@link #sharded}.
     *
     * @param newHook called as {@link BucketHook#average} says
     * @return this builder
     */
    public abstract Builder hook(BucketHook newHook);

    /**
     * Sets the compute stream, on which gradients are computed and used.
     *
     * @param stream a stream of the sync's device; the device's own if not set
     * @return this builder
     */
    public abstract Builder computedOn(Stream stream);

    /**
     * Builds the buckets. Collective.
     *
     * @return buckets filled with zeros, which the caller closes before the sync
     * @throws MismatchedCallException on every rank if parameters or options differ
     * @throws UnavailableException on every rank if a rank has not enough memory, or its compute
     *     stream belongs to another device
     * @throws IllegalArgumentException on every rank if two parameters have the same name, there
     *     would be more than 500 buckets, or {@link #sharded} does not go with the other options
     */
    public abstract GradientBuckets build();
  }
}

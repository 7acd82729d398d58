package org.gradientsync;

import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.function.ObjIntConsumer;

/**
 * The gradients of a model, packed into buckets. The averages of full buckets overlap with the
 * backward pass, which computes the next ones.
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
 * <p>Gradients are views into the buckets, so nothing is copied. When a bucket's last gradient is
 * ready, its average starts as soon as the averages of all buckets before it have started. So all
 * ranks average in the same order, regardless of the order in which their gradients become ready.
 * On a GPU, averages run on streams of their own. If the reducer blocks the host, a communication
 * thread runs them; the sync's other calls, and those of {@link GradientSync#communicator()}, then
 * wait until that thread is idle. A call in the middle of a step is part of the order, too: the
 * same buckets must be full on all ranks when they make it.
 *
 * <p>All ranks build their buckets with the same options and, unless they use {@link #join}, finish
 * the same number of steps. Only one thread at a time may use the buckets, except for {@link
 * #ready}. If {@link #ready} or {@link #finish} throws because an average failed, every further
 * call throws: close the buckets. Whether the sync remains usable depends on the exception, as for
 * {@link GradientSync#average}: after a {@link NotFiniteException}, for example, new buckets can be
 * built. With a reducer that does not block the host, {@link #finish} throws that exception after
 * the step is complete, and the buckets remain usable.
 *
 * <p>The scheme (buckets in reverse order of the parameters, a small first bucket, an order rebuilt
 * once) follows Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel
 * Training", VLDB 2020.
 */
public abstract class GradientBuckets implements AutoCloseable {
  /** How {@link GradientBuckets#finish} treats gradients that are not ready. */
  public enum Missing {
    /**
     * It throws an exception that names them. Usually the program has forgotten a part of the
     * model.
     */
    REFUSE,
    /** It sets them to zero. For models in which some steps or ranks do not use all parameters. */
    ZERO,
    /**
     * It sets them to zero, and does not hand a parameter to the update that no rank had ready, so
     * that momentum and weight decay leave it alone: see {@link GradientBuckets#isSkipped}. For
     * models in which a step may use only some parameters, such as experts.
     */
    SKIP
  }

  /** What happens when a rank has no more data while others have, see {@link #join}. */
  public enum Uneven {
    /** The other ranks go on, and the rank takes part in their steps. */
    JOIN,
    /**
     * All ranks stop after the step in which the first rank has none: {@link #stopRequested} is
     * then true on all of them.
     */
    STOP
  }

  /** By what the sums of gradients are divided. */
  public enum Divisor {
    /** By the number of ranks. */
    ALL_RANKS,
    /**
     * By the number of ranks that contributed: with {@link Missing#SKIP} those that had the
     * parameter ready, otherwise those that were not in {@link #join}.
     */
    CONTRIBUTING_RANKS
  }

  /**
   * This rank's part of a bucket that was built with {@link Builder#sharded}: elements from {@code
   * rank * count} on of the bucket, which consists of {@code size * count} elements. Parameters lie
   * in a bucket one after the other, so a shard may have parts of several, or none. An update
   * either treats all elements alike, or goes through the {@link #pieces}, for example to decay
   * only some parameters. The elements between them are zero and mean nothing: it may change them
   * or not.
   *
   * @param gradient this rank's gradients; averages after {@link #finish()}. Belongs to the compute
   *     stream. Do not close it
   * @param weight this rank's weights, as many, of the same type and in the same order. Belongs to
   *     the compute stream. Do not close it
   * @param pieces the parts of parameters that the shard has, in the order of their elements, none
   *     of them empty; each parameter at most once. The list cannot be changed
   */
  public record Shard(DeviceBuffer gradient, DeviceBuffer weight, List<Piece> pieces) {
    /**
     * Copies the list of pieces.
     *
     * @param gradient the gradients
     * @param weight the weights
     * @param pieces the parts of parameters
     */
    public Shard {
      pieces = List.copyOf(pieces);
    }
  }

  /**
   * The part of a parameter that lies in a {@link Shard}: {@code shard.weight().slice(shardOffset,
   * count)} are its weights.
   *
   * @param parameter the parameter's index in the list, from 0
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
     * @param weight the weights to change, with the same count
     * @param shard the index in {@link #shards}, from 0
     */
    void update(DeviceBuffer gradient, DeviceBuffer weight, int shard);
  }

  /** For the library, which has the only implementation. */
  protected GradientBuckets() {}

  /**
   * Creates a builder of buckets for a model.
   *
   * @param sync the sync whose ranks average; must stay open until the buckets are closed
   * @param parameters the model's parameters in the order of the forward pass, with distinct names,
   *     and with the same names, counts and types on all ranks; may be none on all ranks
   * @return a builder
   */
  public static Builder builder(GradientSync sync, List<Parameter> parameters) {
    return Objects.requireNonNull(sync, "sync").newBuckets(parameters);
  }

  /**
   * The buffer for a parameter's gradient. It belongs to the compute stream, see {@link
   * Builder#computedOn}. After {@link #finish} it holds the average, until the next step overwrites
   * it; in sharded buckets it then holds averages only where it belongs to this rank's {@link
   * #shards}.
   *
   * @param parameter the parameter's index in the list, from 0
   * @return a view, which is valid until {@link #rebuild} or {@link #close}; if the caller closes
   *     it earlier, the next call creates another one
   */
  public abstract DeviceBuffer gradient(int parameter);

  /**
   * The buffer for a parameter's weights, in sharded buckets, at first filled with zeros. It
   * belongs to the compute stream. Write the first weights into it, or read those of a checkpoint,
   * and {@link #broadcast} them; later only {@link #finish(ShardUpdate)} and {@link #update} change
   * it.
   *
   * @param parameter the parameter's index in the list, from 0
   * @return a view with the parameter's type and count, which is valid until {@link #close}; if the
   *     caller closes it earlier, the next call creates another one
   * @throws IllegalStateException if not built with {@link Builder#sharded}
   */
  public abstract DeviceBuffer weight(int parameter);

  /**
   * This rank's parts of the buckets, for which it has the optimizer's state, in sharded buckets.
   *
   * @return one shard for each bucket, in the order of the buckets; always the same list
   * @throws IllegalStateException if not built with {@link Builder#sharded}
   */
  public abstract List<Shard> shards();

  /**
   * The number of parameters.
   *
   * @return 0 or more
   */
  public abstract int size();

  /**
   * The number of buckets.
   *
   * @return 1 or more; 0 without parameters, if not built with {@link Builder#unevenSteps}
   */
  public abstract int bucketCount();

  /**
   * The bucket that holds a parameter's gradient.
   *
   * @param parameter the parameter's index in the list, from 0
   * @return the bucket's index, from 0, in the order in which buckets are averaged
   */
  public abstract int bucketOf(int parameter);

  /**
   * Marks a gradient as ready: it has been written, or the work that writes it has been enqueued on
   * the compute stream. The last gradient of a bucket starts the bucket's average. After this call,
   * do not write to the gradient or enqueue work that does until the average is there; otherwise
   * ranks may get different bits.
   *
   * <p>Returns without waiting for other ranks. Within {@link #noSync} it starts no average.
   * Several threads may call it concurrently; all calls must have returned before {@link #finish}
   * is called. Calls after {@link #close} throw.
   *
   * @param parameter the parameter's index in the list, from 0
   * @throws IllegalStateException if the gradient is already ready in this step
   */
  public abstract void ready(int parameter);

  /**
   * Ends the step: work enqueued later on the compute stream finds the averages. It blocks the host
   * only if the reducer does. Within {@link #noSync} it does nothing.
   *
   * @throws IllegalStateException if gradients are not ready and {@link Missing#REFUSE} was chosen;
   *     the message names them. This breaks the buckets, because the other ranks wait for these
   *     gradients, unless no gradient at all was ready
   * @throws GradientSyncException if an average of this step has failed
   */
  public abstract void finish();

  /**
   * Ends the step as {@link #finish()} does, but waits for one bucket after the other, so that work
   * on the first averages need not wait for the last.
   *
   * @param averaged called with each parameter's index, in the order of the buckets; work that it
   *     enqueues on the compute stream finds this parameter's average. With {@link Missing#SKIP} or
   *     {@link Divisor#CONTRIBUTING_RANKS} it waits for all averages first, on the host, too, and
   *     is not called for a parameter that is {@linkplain #isSkipped skipped}
   * @throws IllegalStateException as {@link #finish()} does, or if built with {@link
   *     Builder#sharded}
   */
  public abstract void finish(IntConsumer averaged);

  /**
   * Ends a step of sharded buckets: the same as {@link #finish()} and {@link #update}, but a
   * bucket's update waits for this bucket's averages only, and its gather overlaps with the next
   * updates. Work enqueued later on the compute stream finds the new weights in {@link #weight}.
   * Within {@link #noSync} it does nothing.
   *
   * @param update called with each shard, in the order of the buckets. With {@link Missing#SKIP} or
   *     {@link Divisor#CONTRIBUTING_RANKS} it waits for all averages first, on the host, too; and
   *     is not called for a shard that has no parameter but {@linkplain #isSkipped skipped} ones.
   *     Go through the {@link Shard#pieces} of the others
   * @throws IllegalStateException as {@link #finish()} does, or if not built with {@link
   *     Builder#sharded}
   * @throws GradientSyncException if an average or a gather of this step has failed
   */
  public abstract void finish(ShardUpdate update);

  /**
   * Updates the weights of sharded buckets after {@link #finish()}, where something needs all
   * averages before the first update. Gathers each bucket's weights on all ranks, while the next
   * shard is updated. Leave it out to skip the update, on all ranks alike. Collective.
   *
   * @param update called with each shard, in the order of the buckets
   * @throws IllegalStateException if not built with {@link Builder#sharded}, in the middle of a
   *     step, or within {@link #noSync}
   * @throws GradientSyncException if a gather has failed
   */
  public abstract void update(ShardUpdate update);

  /**
   * Whether no rank had a parameter's gradient ready in the last step that {@link #finish}
   * averaged, nor within {@link #noSync} since the average before, so that an update must leave it
   * alone. Waits for the averages of that step. All ranks get the same, without communication.
   * False before the first step, and after {@link #discard} or {@link #rebuild}.
   *
   * @param parameter the parameter's index in the list, from 0
   * @return always false if not built with {@link Missing#SKIP}
   * @throws IllegalStateException in the middle of a step
   */
  public abstract boolean isSkipped(int parameter);

  /**
   * Whether all ranks are to stop, because any of them was asked to. True on all ranks after the
   * same {@link #finish}: that of the first step whose last bucket became full after the program
   * has called {@link GradientSync#requestStop}, or its process has received a {@linkplain
   * GradientSync.Builder#stopOnSignal signal}, on any rank. With {@link Uneven#STOP} also after the
   * step in which a rank had no more data. Stays true.
   *
   * <pre>{@code
   * while (!buckets.stopRequested() && hasNext()) {
   *   step(next());
   * }
   * if (sync.rank() == 0) {
   *   save();
   * }
   * }</pre>
   *
   * <p>The averages of the step carry the request, so no rank waits for others. It waits for these
   * averages. In sharded buckets each rank has its shards only, so the ranks exchange one number,
   * and it is collective; built with {@link Missing#SKIP}, they carry it, too. Within {@link
   * #noSync} steps do not change it. An average that {@link #discard} ends does not count.
   *
   * @return the same on all ranks that have finished the same steps
   * @throws IllegalStateException in the middle of a step
   */
  public abstract boolean stopRequested();

  /**
   * Scales all gradients alike so that their norm is at most a maximum. Call it after {@link
   * #finish()} and before the update; in sharded buckets, before {@link #update}. The norm is the
   * square root of the sum of the squares of all averages, in double, and all ranks get the same
   * bits. If it is more than the maximum, but finite, each gradient is multiplied by max / norm, in
   * double, and rounded to its type: a 16-bit one to FLOAT32 first, and from there to its type, on
   * GPUs as in host memory.
   *
   * <p>Waits for the averages and computes on the device that has them. All ranks of a job get the
   * same bits, whatever their GPUs; a job in host memory, another number of ranks, other buckets or
   * sharding may change the last bits of the norm. In sharded buckets each rank has its shards
   * only, so it is collective.
   *
   * @param max the largest norm, more than 0; infinity to get the norm only
   * @return the norm before scaling; NaN or infinity if it is not finite, and gradients are then
   *     not scaled
   * @throws IllegalArgumentException if max is not positive
   * @throws IllegalStateException in the middle of a step, or within {@link #noSync}
   */
  public abstract double clipByGlobalNorm(double max);

  /**
   * Whether all averages of the step are finite: neither NaN nor infinite. Waits for them. Call it
   * after {@link #finish()}; a {@link LossScaler} does. All ranks have the same averages and so the
   * same result, without communication. In sharded buckets each rank has its shards only, so the
   * ranks exchange one number, and it is collective. After {@link #clipByGlobalNorm} in the same
   * step the norm tells, without communication and without another look at the averages, unless it
   * is infinite and the model has FLOAT64 parameters, whose squares may be infinite. A second call
   * in a step returns what the first one did.
   *
   * @return the same on all ranks
   * @throws IllegalStateException in the middle of a step, or within {@link #noSync}
   */
  public abstract boolean isFinite();

  /** Ends {@link #noSync} when it is closed. */
  public interface NoSync extends AutoCloseable {
    /** Turns averaging on again. A second call does nothing. */
    @Override
    void close();
  }

  /**
   * Turns averaging off for gradient accumulation: until the returned object is closed, {@link
   * #ready} and {@link #finish} start no averages. The backward passes of these steps and of the
   * step after them add to the gradients, and that last step averages the sums. A gradient that was
   * ready in any of these steps does not count as missing: what they added up is averaged. To throw
   * them away instead, call {@link #discard}.
   *
   * @return an object to close before the last of the steps, best with try-with-resources; {@link
   *     #noSync(Runnable)} does without it
   * @throws IllegalStateException in the middle of a step
   */
  public abstract NoSync noSync();

  /**
   * Runs steps of gradient accumulation, as between {@link #noSync()} and its close:
   *
   * <pre>{@code
   * buckets.noSync(() -> {
   *   for (Batch batch : allButTheLast) {
   *     step(batch);
   *   }
   * });
   * step(last); // averages the sums
   * }</pre>
   *
   * @param steps run at once, on the caller's thread; what it throws is thrown here, after
   *     averaging is on again
   * @throws IllegalStateException in the middle of a step
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
   * {@link #noSync}, and sets all gradients to zero. The weights of sharded buckets stay. The next
   * step starts from scratch, so gradients that are not ready in it are {@link Missing}.
   *
   * <p>Within {@link #noSync} it concerns this rank only, and forgets all steps since averaging was
   * turned off; averaging stays off. Otherwise it is collective: all ranks call it in the same
   * step, whichever gradients are ready on each, instead of {@link #finish}. Averages may be under
   * way, so it then takes as long as the averages of a step. If another rank finishes the step, all
   * ranks throw at that rank's next call.
   *
   * <p>All calls of {@link #ready} must have returned before.
   *
   * @throws IllegalStateException within {@link #finish}; or, if built with {@link
   *     Builder#unevenSteps}, outside of {@link #noSync}, because ranks in {@link #join} would use
   *     the averages
   * @throws MismatchedCallException if another rank makes another call
   * @throws GradientSyncException if an average of this step has failed; this breaks the buckets
   */
  public abstract void discard();

  /**
   * Copies one rank's parameters to all ranks. Collective.
   *
   * @param values the parameters' values as buffers of the sync, with the types and counts given to
   *     the builder
   * @param root the rank that has the values
   * @throws IllegalArgumentException if number, types or counts differ from the model's
   */
  public abstract void broadcast(List<? extends DeviceBuffer> values, int root);

  /**
   * Gathers a state of the optimizer, such as Adam's first moments, on one rank, to write a
   * checkpoint that does not depend on the number of ranks. Needs memory for one bucket there.
   * Collective; in sharded buckets, between steps.
   *
   * @param state this rank's state: one buffer of the sync for each of {@link #shards}, with as
   *     many elements, all of one type
   * @param root the rank that gets the state, the same on all ranks
   * @param values called on the root only, for each parameter in the order of the buckets, with the
   *     parameter's state, a buffer of the parameter's count that is valid during the call, and its
   *     index
   * @throws IllegalArgumentException if number or counts of the buffers do not match, or there is
   *     no such rank
   * @throws MismatchedCallException if the types of the ranks' buffers differ
   * @throws IllegalStateException if not built with {@link Builder#sharded}, or in the middle of a
   *     step
   */
  public abstract void gatherState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values);

  /**
   * Gives each rank its part of a state that {@link #gatherState} gathered, with any number of
   * ranks and any bucket sizes. Collective; in sharded buckets, between steps.
   *
   * @param state receives this rank's state: one buffer of the sync for each of {@link #shards},
   *     with as many elements, of any type; zero where there is no parameter
   * @param root the rank that has the state, the same on all ranks
   * @param values called on the root only, for each parameter in the order of the buckets, with a
   *     buffer of the parameter's count to write its state to, at first zero, and its index
   * @throws IllegalArgumentException if number or counts of the buffers do not match, or there is
   *     no such rank
   * @throws MismatchedCallException if the types of the ranks' buffers differ
   * @throws IllegalStateException if not built with {@link Builder#sharded}, or in the middle of a
   *     step
   */
  public abstract void scatterState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values);

  /**
   * Lays the buckets out anew, in the order in which the gradients became ready on rank 0 in the
   * first step. Gradients lose their values. Collective. Call it after the first step's {@link
   * #finish}, once the averages have been used, and before any rank calls {@link #join}.
   *
   * @return true if the layout has changed; the earlier views are then closed, so call {@link
   *     #gradient} again
   * @throws IllegalStateException if no step has been finished yet, in the middle of a step, within
   *     {@link #noSync}, or if built with {@link Builder#sharded}
   */
  public abstract boolean rebuild();

  /**
   * Takes part in the other ranks' steps with gradients of zero until all ranks have called it: for
   * ranks with fewer steps than others. {@link Builder#divisor} says by what sums are divided. Each
   * rank calls it once, after its last step, unless {@link #stopRequested} has ended its loop. With
   * {@link Uneven#STOP} it takes part in one step, after which the others stop.
   *
   * @param update called after each such step, when the averages are there, to keep this rank's
   *     parameters the same as the others'
   * @return the number of steps in which it took part
   * @throws IllegalStateException if not built with {@link Builder#unevenSteps}, in the middle of a
   *     step, or within {@link #noSync}
   */
  public abstract long join(Runnable update);

  /**
   * Frees the buckets' memory. Not collective. In the middle of a step whose averages block the
   * host, it cancels them, which breaks the sync. A second call does nothing.
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
     */
    public abstract Builder bucketBytes(long newBytes);

    /**
     * Sets the size at which the first bucket is full. It is smaller than the others, so that
     * averaging starts early.
     *
     * @param newBytes bytes, 1 or more; 1 MiB if not set
     * @return this builder
     */
    public abstract Builder firstBucketBytes(long newBytes);

    /**
     * Chooses whether averages overlap with the backward pass. Without overlap, {@link #finish}
     * averages all buckets on the compute stream.
     *
     * @param newOverlap true to overlap; true if not set
     * @return this builder
     */
    public abstract Builder overlap(boolean newOverlap);

    /**
     * Chooses how the end of a step treats gradients that are not ready.
     *
     * @param newMissing {@link Missing#REFUSE} if not set
     * @return this builder
     */
    public abstract Builder missing(Missing newMissing);

    /**
     * Allows ranks to have different numbers of steps: {@link Uneven#JOIN}.
     *
     * @return this builder
     */
    public Builder unevenSteps() {
      return unevenSteps(Uneven.JOIN);
    }

    /**
     * Allows ranks to have different numbers of steps, see {@link GradientBuckets#join}. Costs one
     * small kernel or copy per step.
     *
     * @param newUneven what happens when the first rank has no more data
     * @return this builder
     */
    public abstract Builder unevenSteps(Uneven newUneven);

    /**
     * Chooses by what the sums of gradients are divided. {@link Divisor#CONTRIBUTING_RANKS} takes
     * the average over all ranks, and multiplies it by their number divided by that of the ranks
     * that contributed, in double, rounded as {@link GradientBuckets#clipByGlobalNorm} rounds; for
     * that, {@link GradientBuckets#finish} waits for the averages on the host. In buckets of
     * BFLOAT16 the number of ranks is exact up to 256.
     *
     * @param newDivisor {@link Divisor#ALL_RANKS} if not set
     * @return this builder
     */
    public abstract Builder divisor(Divisor newDivisor);

    /**
     * Shards the optimizer: each rank has the optimizer's state for its {@linkplain
     * GradientBuckets#shards shards} only, 1/size of it, and updates their weights (ZeRO-1). Full
     * buckets are reduce-scattered during the backward pass instead of averaged, and the ranks
     * gather the weights after the update. That moves as much as averages do. The weights have the
     * bits that they have without shards if the update computes each element by itself.
     *
     * <p>The buckets then hold the weights, too, see {@link GradientBuckets#weight}, which takes as
     * much memory as the gradients. Buckets are padded to a multiple of size * 256 bytes. At most
     * 250 buckets; not with {@link #unevenSteps} or {@link GradientBuckets#rebuild}.
     *
     * @return this builder
     */
    public abstract Builder sharded();

    /**
     * Calls a hook for each full bucket in place of its average. All ranks set one, of the same
     * kind. Not with {@link #sharded}.
     *
     * <p>The hook gets a sync of its own, with the memory that its reducer needs. What the ranks
     * tell each other with the averages, such as {@link #stopRequested}, takes a small average more
     * in each step. Averages use one communication stream. Averages that {@link #discard} ends call
     * the hook, too.
     *
     * @param newHook called as {@link BucketHook#average} says
     * @return this builder
     */
    public abstract Builder hook(BucketHook newHook);

    /**
     * Sets the compute stream: the one on which gradients are computed and used.
     *
     * @param stream a stream of the sync's device; the device's own if not set
     * @return this builder
     */
    public abstract Builder computedOn(Stream stream);

    /**
     * Builds the buckets. Collective.
     *
     * @return buckets filled with zeros, which the caller closes before the sync
     * @throws MismatchedCallException on every rank if the ranks' parameters or options differ; the
     *     message names the first parameter or the option that does
     * @throws UnavailableException on every rank if a rank has not enough memory, or its compute
     *     stream belongs to another device
     * @throws IllegalArgumentException on every rank if two parameters have the same name, if there
     *     would be more than 500 buckets, or if {@link #sharded} does not go with the other options
     */
    public abstract GradientBuckets build();
  }
}

package org.gradientsync;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Averages gradients over ranks: what training code uses.
 *
 * <pre>{@code
 * try (GradientSync sync = GradientSync.create()) {
 *   DeviceBuffer gradients = sync.allocate(DataType.FLOAT32, 10_000);
 *   gradients.copyFrom(hostArray);
 *   sync.average(gradients); // in place, on every rank
 *   gradients.copyTo(hostArray);
 * }
 * }</pre>
 *
 * <p>{@link #create()} finds out how this process was started (under mpirun, or alone), which
 * device it can have, and the fastest reducer that every rank can use. The same calls must be made
 * by all ranks in the same order; see {@link Communicator} for what happens otherwise.
 *
 * <p>Calls from several threads on one sync are carried out one after the other. {@link #close()}
 * waits for a running call.
 */
public abstract class GradientSync implements AutoCloseable {
  private static final String IMPLEMENTATION = "org.gradientsync.internal.sync.SyncBuilder";

  /** For the library, which has the only implementation. */
  protected GradientSync() {}

  /**
   * A sync with nothing chosen by hand. Collective: every rank of the job creates its own at the
   * same time.
   *
   * @return a sync that the caller closes
   * @throws UnavailableException if nothing can work here, or what a system property asks for
   *     cannot
   * @throws RankLostException if a rank does not come in time, or has ended; no sync can be created
   *     any more then
   */
  public static GradientSync create() {
    return builder().create();
  }

  /**
   * For choosing by hand.
   *
   * @return a new builder
   */
  public static Builder builder() {
    try { // by name, so that this package depends on none of those that implement it
      return (Builder) Class.forName(IMPLEMENTATION).getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "gradient-sync-api is incomplete: class=" + IMPLEMENTATION + "; use the whole jar", e);
    }
  }

  /**
   * Allocates a buffer on this rank's device; its contents are zero.
   *
   * @param type the element type
   * @param count the number of elements, 0 or more; may exceed 2^31
   * @return a buffer that the caller closes
   * @throws IllegalArgumentException if count is negative or larger than the device can address
   * @throws GradientSyncException if there is not enough memory
   */
  public abstract DeviceBuffer allocate(DataType type, long count);

  /**
   * Makes host memory that someone else allocated usable as a buffer, in place. For ranks whose
   * device is the host; memory of other devices is wrapped by their own classes.
   *
   * @param type the element type
   * @param memory a direct, writable buffer in native byte order, of which the part between
   *     position and limit is used; it stays its owner's
   * @return a buffer that the caller closes, which leaves the memory as it is
   * @throws IllegalArgumentException if it is not such a buffer, not a whole number of elements, or
   *     this rank's device is not the host
   */
  public abstract DeviceBuffer wrap(DataType type, ByteBuffer memory);

  /**
   * Makes each element the average over all ranks, in place. The same as {@link #allReduce} with
   * {@link ReduceOp#AVERAGE}.
   *
   * @param buffer a floating-point buffer of this sync
   */
  public void average(DeviceBuffer buffer) {
    allReduce(buffer, ReduceOp.AVERAGE);
  }

  /**
   * Makes each element the reduction over all ranks, in place, with the bits that {@link ReduceOp}
   * promises; sums and averages of FLOAT32 are rounded more coarsely where {@link #wire()} is set.
   * Ordered on the buffer's stream: it takes effect after what was enqueued there before, and
   * before what is enqueued later. Collective.
   *
   * <p>Where the reducer does not block the host ({@code peer}), what goes wrong on the device is
   * thrown when the host waits for the device the next time, in {@link DeviceBuffer#copyTo} for
   * example, or by its next call, which is then not carried out. The sync is broken after that,
   * also by calls that do not match. There, buffers that have once been reduced together (the
   * ranks' first calls for them were the same call) have to be reduced together always.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same {@linkplain
   *     DeviceBuffer#named name} if it has one, on all ranks
   * @param op the same on all ranks
   * @throws IllegalArgumentException if the operation is not defined for the type, or the buffer is
   *     another sync's
   * @throws IllegalStateException if the buffer or this sync is closed
   * @throws MismatchedCallException if the ranks' calls differ; no buffer is changed
   * @throws RankLostException if a rank does not come in time
   * @throws NotFiniteException if {@link Builder#requireFinite} asks for it and a rank's elements
   *     are not finite
   */
  public abstract void allReduce(DeviceBuffer buffer, ReduceOp op);

  /**
   * Copies one rank's elements to all ranks: initial weights, say. Ordered on the buffer's stream.
   * Collective.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same name if it has
   *     one, on all ranks
   * @param root the rank that has the data, the same on all ranks
   * @throws IllegalArgumentException if there is no such rank, or the buffer is another sync's
   * @throws IllegalStateException if the buffer or this sync is closed
   * @throws MismatchedCallException if the ranks' calls differ; no buffer is changed
   * @throws RankLostException if a rank does not come in time
   */
  public abstract void broadcast(DeviceBuffer buffer, int root);

  /**
   * Prepares a buffer for reductions, so that the first one is as fast as the others. Needed before
   * calls are captured into a graph, and for nothing else. Collective: the ranks register buffers
   * that they will reduce together. A slice is prepared for itself: keep slices that are reduced
   * often, or each new one costs as much as a first call ({@code peer} takes 2 million of them).
   *
   * <p>Launches of a {@code CudaGraph} keep the order of this sync's calls, on whichever streams;
   * those through the driver itself are the caller's to keep in order. They must have ended before
   * the sync or a buffer is closed.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same name if it has
   *     one, on all ranks
   * @throws IllegalArgumentException if the buffer is another sync's
   * @throws IllegalStateException if the buffer or this sync is closed
   * @throws MismatchedCallException if the ranks' calls differ
   * @throws RankLostException if a rank does not come in time
   */
  public abstract void register(DeviceBuffer buffer);

  /** Returns on each rank after every rank has called it. Does not wait for the device. */
  public abstract void barrier();

  /**
   * This rank's number.
   *
   * @return from 0 to size - 1
   */
  public abstract int rank();

  /**
   * The number of ranks.
   *
   * @return 1 or more
   */
  public abstract int size();

  /**
   * This rank's number among the ranks of its node.
   *
   * @return from 0 to localSize - 1
   */
  public abstract int localRank();

  /**
   * The number of ranks on this rank's node.
   *
   * @return 1 or more
   */
  public abstract int localSize();

  /**
   * This rank's device.
   *
   * @return where {@link #allocate} takes memory
   */
  public abstract Device device();

  /**
   * The name of the reducer that was chosen.
   *
   * @return for example {@code local}
   */
  public abstract String reducer();

  /**
   * The reducers that were not chosen.
   *
   * @return the reason by the reducer's name, the fastest one first; the same on all ranks
   */
  public abstract Map<String, String> alternatives();

  /**
   * What FLOAT32 sums and averages travel as; see {@link Builder#wire}.
   *
   * @return FLOAT16 or BFLOAT16, or empty if they travel as they are
   */
  public abstract Optional<DataType> wire();

  /**
   * The name of the launcher that brought the ranks together.
   *
   * @return {@code local} for threads of one JVM and for a process alone, {@code mpi} under mpirun
   */
  public abstract String launcher();

  /**
   * The ranks, for small exchanges of host memory. Shares its order of calls with this sync.
   *
   * @return a communicator that ends with this sync
   */
  public abstract Communicator communicator();

  /**
   * Tells from now on what each reduction took, which costs a few microseconds each. Flight
   * Recorder's event {@code org.gradientsync.Synchronization} says the same, if a recording wants
   * it.
   *
   * @param listener called in order, by a thread that is in the same or a later call of this sync
   *     or its buckets, or closes it. Collective calls that it makes of the sync itself throw an
   *     {@link IllegalStateException}. What it throws is logged, the first time, and changes
   *     nothing. Reductions that end in exceptions, and those in graphs, are not told
   * @return when the counting of {@link Synchronization#startedAt} begins for this listener, for
   *     comparing with events of one's own; ends with this sync
   * @throws IllegalStateException if this sync is closed
   */
  public abstract Event observe(Consumer<Synchronization> listener);

  /**
   * Gives everything back but the buffers, which cannot be used any more. Not collective; but what
   * has been enqueued on the device is finished first, or ends with the time-out. A second call
   * does nothing.
   */
  @Override
  public abstract void close();

  /**
   * Makes a builder for {@link GradientBuckets#builder}.
   *
   * @param parameters at least one
   * @return a builder
   */
  protected abstract GradientBuckets.Builder newBuckets(List<Parameter> parameters);

  /**
   * Chooses by hand what {@link GradientSync#create()} finds out. What is set here wins over system
   * properties.
   */
  public abstract static class Builder {
    /** For the library, which has the only implementation. */
    protected Builder() {}

    /**
     * Asks for a reducer by name, instead of the fastest. System property {@code
     * gradientsync.reducer}.
     *
     * @param name for example {@code host-staged}
     * @return this builder
     */
    public Builder reducer(String name) {
      return set("reducer", name);
    }

    /**
     * Asks for a kind of device, instead of the fastest. System property {@code
     * gradientsync.device}.
     *
     * @param kind {@code host} or {@code cuda}
     * @return this builder
     */
    public Builder device(String kind) {
      return set("device", kind);
    }

    /**
     * How long a call waits for another rank before it throws. System property {@code
     * gradientsync.timeout}, in seconds. Five minutes if not set. Time in which the process that
     * waits is suspended does not count, except while a GPU waits.
     *
     * @param timeout more than zero
     * @return this builder
     * @throws IllegalArgumentException if it is zero or negative
     */
    public Builder timeout(Duration timeout) {
      Objects.requireNonNull(timeout, "timeout");
      if (timeout.isZero() || timeout.isNegative()) {
        throw new IllegalArgumentException("time-out must be more than zero: timeout=" + timeout);
      }
      return set("timeout", timeout.toString());
    }

    /**
     * Where a time-out leaves a folder with a report of each rank: what it was doing, its last
     * calls, its threads, versions, settings. System property {@code gradientsync.reports}; {@code
     * off} for none. The working folder if not set, or the folder for temporary files where that
     * cannot be written to.
     *
     * <p>One rank logs what all were doing. Ranks of nodes that do not see the same folder write
     * into one on each node, and tell each other by messages what they were doing.
     *
     * @param folder made if it is not there
     * @return this builder
     */
    public Builder reports(Path folder) {
      return set("reports", Objects.requireNonNull(folder, "folder").toString());
    }

    /**
     * Lets each {@link GradientSync#allReduce} look for NaN and infinities in this rank's elements
     * before they are added to the others'. System property {@code gradientsync.finite}: {@code
     * true} or {@code false}. Off if not set; then they pass through, and all ranks get them. What
     * becomes infinite only in the sum, or on a 16-bit wire, is not found. The same on all ranks.
     *
     * <p>With reducers that block the host, every rank gets a {@link NotFiniteException} that names
     * the ranks, the buffer and an index, and no buffer is changed. With {@code peer} the GPU looks
     * while it averages and the host does not wait: the exception comes when the host waits for the
     * averages the next time, on all ranks, and they hold what the elements made of them. {@code
     * docs/performance.md} has what it costs.
     *
     * @param required true to look
     * @return this builder
     */
    public Builder requireFinite(boolean required) {
      return set("finite", Boolean.toString(required));
    }

    /**
     * Lets FLOAT32 gradients travel as a 16-bit type, in half the bytes. System property {@code
     * gradientsync.wire}: {@code bfloat16} or {@code float16}. The same on all ranks. Without it,
     * gradients travel as they are; {@code set("wire", "")} keeps the property off.
     *
     * <p>It is about {@link ReduceOp#SUM} and {@link ReduceOp#AVERAGE} of FLOAT32 buffers on two
     * ranks or more. Each rank's elements are rounded to the type, to nearest even; they are added
     * up in float32 in rank order, and divided for an average; the result is rounded to the type
     * and widened to float32. So all ranks get the same bits, whichever reducer runs. Other types,
     * other operations and broadcasts travel as they are.
     *
     * <p>With u = 2<sup>-8</sup> for BFLOAT16 and 2<sup>-11</sup> for FLOAT16, an average a of n
     * ranks' elements g is off by at most u mean(|g|) + u |a|, and what n operations in float32
     * add: about n 2<sup>-24</sup> mean(|g|). For a sum it is the same with the sum of |g| in place
     * of their mean.
     *
     * <p>FLOAT16 is for gradients that are known to be neither large nor small: elements and
     * results from 65520 on become infinite, and below 2<sup>-14</sup> each rounding is off by up
     * to 2<sup>-25</sup>, so that what is not above 2<sup>-25</sup> becomes zero. BFLOAT16 has the
     * range of float32, but for what is within a 512th of its end, which becomes infinite.
     *
     * @param type BFLOAT16 or FLOAT16
     * @return this builder
     * @throws IllegalArgumentException for other types
     */
    public Builder wire(DataType type) {
      if (type != DataType.BFLOAT16 && type != DataType.FLOAT16) {
        throw new IllegalArgumentException(
            "not a type that gradients can travel as: wire="
                + Objects.requireNonNull(type, "wire")
                + "; give BFLOAT16 or FLOAT16");
      }
      return set("wire", type.name().toLowerCase(Locale.ROOT));
    }

    /**
     * Sets what a backend reads: the same as the system property {@code gradientsync.<name>}. On
     * GPUs these are {@code cuda.device}, the number of the GPU to take, and {@code overlap.sms},
     * on how many SMs averages run that overlap with a backward pass.
     *
     * @param name the setting's name
     * @param value its value
     * @return this builder
     */
    public abstract Builder set(String name, String value);

    /**
     * Builds the sync. Collective: every rank of the job does so at the same time, with the same
     * choices.
     *
     * @return a sync that the caller closes
     * @throws UnavailableException if what was asked for cannot work here, on every rank alike
     * @throws RankLostException if a rank does not come in time, or has ended; no sync can be
     *     created any more then
     */
    public abstract GradientSync create();
  }
}

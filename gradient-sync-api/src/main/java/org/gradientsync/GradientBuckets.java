package org.gradientsync;

import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import org.gradientsync.internal.collectives.Agreement;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
public final class GradientBuckets implements AutoCloseable {
  /** What {@link GradientBuckets#finish} does with gradients that are not ready. */
  public enum Missing {
    /** It throws, naming them: usually a part of the model was forgotten. */
    REFUSE,
    /** They are zero: parts of the model are not used in every step, or by every rank. */
    ZERO
  }

  private static final Logger log = LoggerFactory.getLogger(GradientBuckets.class);
  private static final int MOST_BUCKETS = 500; // all of which reducers keep prepared
  private static final int MOST_NAMES = 20; // in an error text
  private static final int MANY_QUIET_STEPS = 500;

  private final GradientSync sync;
  private final Builder options;
  private final List<Parameter> parameters;
  private final Stream compute;
  private final CommunicationThread.Lane lane; // or null
  private final int number; // of these buckets, among the sync's
  private final IntConsumer nothing = parameter -> {};
  private final Readiness readiness;
  private BucketStreams streams;
  private BucketSet set;
  private long lastTicket;
  private int started;
  private int quiet;
  private long quietSteps; // that have ended since noSync()
  private boolean warnedOfQuiet;
  private boolean joining;
  private boolean finishing; // within finish(update)
  private Throwable broken;
  private boolean closed;

  private GradientBuckets(Builder options) {
    this.options = options;
    sync = options.sync;
    parameters = options.parameters;
    readiness = new Readiness(parameters.size());
    sync.awaitBeside();
    LayoutCheck.requireSame(
        sync.ownCommunicator(),
        parameters,
        List.of("firstBucketBytes", "bucketBytes", "unevenSteps", "overlap"),
        options.firstBytes,
        options.bytes,
        options.unevenSteps ? 1 : 0,
        options.overlap ? 1 : 0);
    LayoutCheck.requireDifferentNames(parameters, sync.rank());
    number = sync.nextBuckets();
    compute = options.compute == null ? sync.backend().stream() : options.compute;
    boolean needsThread = options.overlap && sync.size() > 1 && sync.blocksHost();
    lane = needsThread ? sync.communicationThread().lane() : null;
    try {
      layOut();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

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
    return new Builder(sync, parameters);
  }

  private BucketLayout layout() {
    return new BucketLayout(
        parameters, readiness.order(), options.firstBytes, options.bytes, options.unevenSteps);
  }

  private void layOut() {
    BucketLayout layout = layout();
    if (layout.buckets.size() > MOST_BUCKETS) {
      throw new IllegalArgumentException(
          "too many buckets: buckets="
              + layout.buckets.size()
              + ", most="
              + MOST_BUCKETS
              + ", rank="
              + sync.rank()
              + "; raise bucketBytes");
    }
    String reason = "";
    try {
      if (streams == null) {
        streams = new BucketStreams(sync.backend(), sync.blocksHost(), compute, options.overlap);
      }
      set = new BucketSet(sync, parameters, layout, compute, streams, number);
    } catch (GradientSyncException | IllegalArgumentException e) {
      reason = e.getMessage();
    }
    Agreement.requireAll(sync.ownCommunicator(), reason);
    for (Bucket bucket : set.buckets) {
      if (bucket.averaged.count() > 0) {
        sync.prepare(bucket.averaged);
      }
    }
    begin();
  }

  /** Forgets the last step. */
  private void begin() {
    readiness.begin();
    started = 0;
    set.begin();
  }

  /**
   * Where a gradient goes. It belongs to the stream that computes, see {@link Builder#computedOn}.
   * Its elements hold the average after {@link #finish} until the next step writes them.
   *
   * @param parameter its number in the list, from 0
   * @return a view, which ends with {@link #rebuild} or {@link #close}; if it is closed before, the
   *     next call makes another
   */
  public DeviceBuffer gradient(int parameter) {
    return set.gradient(requireParameter(parameter));
  }

  /**
   * The number of parameters.
   *
   * @return 1 or more
   */
  public int size() {
    return parameters.size();
  }

  /**
   * The number of buckets.
   *
   * @return 1 or more
   */
  public int bucketCount() {
    return set.buckets.length;
  }

  /**
   * Which bucket a gradient lies in.
   *
   * @param parameter its number in the list, from 0
   * @return from 0, in the order in which buckets are averaged
   */
  public int bucketOf(int parameter) {
    return set.layout.bucketOf[requireParameter(parameter)];
  }

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
  public synchronized void ready(int parameter) {
    requireUsable();
    requireParameter(parameter);
    if (quiet > 0) {
      readiness.keep(parameter);
      return;
    }
    if (readiness.has(parameter)) {
      throw new IllegalStateException(
          "gradient is ready already: parameter="
              + parameters.get(parameter)
              + ", rank="
              + sync.rank()
              + "; call finish() at the end of each step, noSync() to add several steps up, and"
              + " close() to give a step up");
    }
    readiness.add(parameter);
    set.bucketOf(parameter).missing--;
    if (options.overlap) {
      startFull();
    }
  }

  private void startFull() {
    while (started < set.buckets.length && set.buckets[started].missing == 0) {
      Bucket bucket = set.buckets[started++];
      try {
        if (started == 1 && set.flag != null && !joining) {
          set.flag.raise();
        }
        bucket.ready.record(compute);
        bucket.observation =
            sync.observer().begin(bucket.averaged, compute, ReduceOp.AVERAGE, started - 1);
        if (bucket.observation != null) {
          bucket.observation.ready(compute);
        }
        if (lane != null) {
          bucket.ticket = lane.hand(bucket.average);
          lastTicket = bucket.ticket;
        } else {
          sync.awaitBeside(); // another model's averages, perhaps
          bucket.average.run();
        }
      } catch (RuntimeException | Error e) {
        broken = e;
        if (lane == null) {
          set.forgetObservations();
        }
        throw e;
      }
    }
  }

  /**
   * Ends the step: what is enqueued later on the stream that computes finds the averages. Does not
   * block the host where the reducer does not. Within {@link #noSync} it does nothing.
   *
   * @throws IllegalStateException if gradients are not ready and {@link Missing#REFUSE} was chosen:
   *     with their names. The other ranks wait for them in vain, so the buckets are broken, unless
   *     none was ready at all
   * @throws GradientSyncException what an average of this step has thrown
   */
  public void finish() {
    finish(nothing);
  }

  /**
   * Ends the step as {@link #finish()} does, and awaits bucket after bucket, so that what is done
   * with the first averages need not wait for the last.
   *
   * @param averaged called for each parameter's number, in the order of the buckets: what it
   *     enqueues on the stream that computes finds this parameter's average
   */
  public void finish(IntConsumer averaged) {
    Objects.requireNonNull(averaged, "averaged");
    if (!endStep()) {
      return;
    }
    finishing = true;
    try {
      for (Bucket bucket : set.buckets) {
        await(bucket);
        for (int parameter : bucket.parameters) {
          averaged.accept(parameter);
        }
      }
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    } finally {
      finishing = false;
    }
    begin(); // not before: what belongs between steps is refused in between
    sync.observer().tell(compute);
  }

  /** Starts what is left. Whether there are averages to wait for then. */
  private synchronized boolean endStep() {
    requireUsable();
    if (finishing) {
      throw new IllegalStateException(
          "finish() within finish(): rank=" + sync.rank() + "; it is called once, after the step");
    }
    if (quiet > 0) {
      if (++quietSteps == MANY_QUIET_STEPS && !warnedOfQuiet) {
        warnedOfQuiet = true;
        log.warn(
            "rank {}: {} steps have ended within noSync(), and nothing has been averaged; was it"
                + " forgotten to close it?",
            sync.rank(),
            quietSteps);
      }
      return false;
    }
    if (!readiness.isComplete()) {
      settleMissing();
    }
    startFull();
    readiness.ordered();
    return true;
  }

  private void await(Bucket bucket) {
    if (bucket.observation != null && options.overlap) {
      bucket.observation.wanted(compute);
    }
    if (lane != null) {
      awaitLane(bucket);
    }
    compute.waitFor(bucket.done);
    if (bucket.observation != null) {
      bucket.observation.complete();
      bucket.observation = null;
    }
  }

  private void awaitLane(Bucket bucket) {
    try {
      lane.await(bucket.ticket);
    } catch (RuntimeException | Error e) {
      set.forgetObservations(); // the thread has dropped the buckets after this one
      throw e;
    }
  }

  private void settleMissing() {
    List<Parameter> missing = new ArrayList<>();
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.hasKept(i)) {
        missing.add(parameters.get(i));
      }
    }
    if (options.missing == Missing.REFUSE && !missing.isEmpty()) {
      String names =
          missing.size() > MOST_NAMES
              ? missing.subList(0, MOST_NAMES) + " and " + (missing.size() - MOST_NAMES) + " more"
              : missing.toString();
      if (missing.size() == parameters.size()) {
        throw new IllegalStateException( // nothing has begun here, so nothing is broken
            "no gradient is ready: missing="
                + names
                + ", rank="
                + sync.rank()
                + "; call finish() once in each step, after ready() for each parameter, or build with"
                + " missing(Missing.ZERO)");
      }
      IllegalStateException e =
          new IllegalStateException(
              "gradients are not ready: missing="
                  + names
                  + ", rank="
                  + sync.rank()
                  + "; call ready() for each, or build with missing(Missing.ZERO)");
      broken = e;
      throw e;
    }
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.has(i)) {
        if (!readiness.hasKept(i)) {
          set.gradient(i).fillZero();
        }
        ready(i);
      }
    }
  }

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
  public NoSync noSync() {
    requireBetweenSteps("noSync");
    if (quiet++ == 0) {
      quietSteps = 0;
    }
    return new NoSync() {
      private boolean ended;

      @Override
      public void close() {
        quiet -= ended ? 0 : 1;
        ended = true;
      }
    };
  }

  /**
   * Copies one rank's parameters to all ranks. Collective.
   *
   * @param values the parameters themselves, of the types and counts given to the builder, as
   *     buffers of the sync
   * @param root the rank that has them
   * @throws IllegalArgumentException if they are not the model's
   */
  public void broadcast(List<? extends DeviceBuffer> values, int root) {
    requireUsable();
    Objects.requireNonNull(values, "values");
    for (int i = 0; i < Math.max(values.size(), parameters.size()); i++) {
      if (i >= values.size()
          || i >= parameters.size()
          || values.get(i).type() != parameters.get(i).type()
          || values.get(i).count() != parameters.get(i).count()) {
        throw new IllegalArgumentException(
            "not the model's parameters: index="
                + i
                + ", is="
                + (i < values.size() ? values.get(i) : "none")
                + ", expected="
                + (i < parameters.size() ? parameters.get(i) : "none")
                + ", rank="
                + sync.rank());
      }
    }
    sync.broadcast(values, root);
  }

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
  public boolean rebuild() {
    requireBetweenSteps("rebuild");
    requireLoud("rebuild");
    if (!readiness.isOrdered()) {
      throw new IllegalStateException(
          "no step has been finished yet: rank=" + sync.rank() + "; call rebuild() after finish()");
    }
    sync.awaitBeside();
    sync.ownCommunicator().broadcast(IntBuffer.wrap(readiness.order()), 0);
    if (layout().isSameAs(set.layout)) {
      return false;
    }
    try {
      set.close();
      layOut();
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    }
    return true;
  }

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
  public long join(Runnable update) {
    requireBetweenSteps("join");
    requireLoud("join");
    if (set.flag == null) {
      throw new IllegalStateException(
          "built without uneven steps: rank=" + sync.rank() + "; build with unevenSteps()");
    }
    joining = true;
    try {
      for (long steps = 0; ; steps++) {
        for (Bucket bucket : set.buckets) {
          bucket.flat.fillZero();
        }
        for (int i = 0; i < parameters.size(); i++) {
          ready(i);
        }
        finish(nothing);
        if (!set.flag.isRaised()) {
          return steps;
        }
        update.run();
      }
    } finally {
      joining = false;
    }
  }

  private int requireParameter(int parameter) {
    if (parameter < 0 || parameter >= parameters.size()) {
      throw new IndexOutOfBoundsException(
          "no such parameter: parameter="
              + parameter
              + ", count="
              + parameters.size()
              + ", rank="
              + sync.rank());
    }
    return parameter;
  }

  private void requireUsable() {
    sync.requireNoListener();
    if (closed) {
      throw new IllegalStateException("buckets are closed: rank=" + sync.rank());
    }
    if (broken != null) {
      throw new IllegalStateException(
          "buckets are broken by an earlier failure: rank=" + sync.rank(), broken);
    }
  }

  private void requireBetweenSteps(String call) {
    requireUsable();
    if (!readiness.isEmpty()) {
      throw new IllegalStateException(
          call + "() in the middle of a step: rank=" + sync.rank() + "; call finish() first");
    }
  }

  private void requireLoud(String call) {
    if (quiet > 0) {
      throw new IllegalStateException(
          call + "() within noSync(): rank=" + sync.rank() + "; close that first");
    }
  }

  /**
   * Gives the buckets' memory back. Not collective. In the middle of a step whose averages block
   * the host, they are given up, which breaks the sync. A second call does nothing.
   */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    if (quiet > 0) {
      log.warn(
          "rank {}: buckets are closed within noSync(), which nobody has closed: what was ready"
              + " since then has not been averaged",
          sync.rank());
    }
    if (lane != null && started > 0) {
      lane.abandon(lastTicket);
    }
    if (set != null) {
      set.forgetObservations();
    }
    Resources.closeAll(set, streams);
  }

  /** How gradients are packed and averaged. All ranks build alike. */
  public static final class Builder {
    private final GradientSync sync;
    private final List<Parameter> parameters;
    private long firstBytes = 1 << 20;
    private long bytes = 25 << 20;
    private boolean overlap = true;
    private boolean unevenSteps;
    private Missing missing = Missing.REFUSE;
    private Stream compute;

    private Builder(GradientSync sync, List<Parameter> parameters) {
      this.sync = Objects.requireNonNull(sync, "sync");
      for (Parameter parameter : Objects.requireNonNull(parameters, "parameters")) {
        Objects.requireNonNull(parameter, "a parameter");
      }
      this.parameters = List.copyOf(parameters);
      if (this.parameters.isEmpty()) {
        throw new IllegalArgumentException("there are no parameters: rank=" + sync.rank());
      }
    }

    /**
     * When a bucket is closed: as soon as its gradients take this many bytes.
     *
     * @param newBytes 1 or more; 25 MiB if not set
     * @return this builder
     */
    public Builder bucketBytes(long newBytes) {
      bytes = requirePositive(newBytes, "bucketBytes");
      return this;
    }

    /**
     * When the first bucket is closed, which is smaller so that averaging begins early.
     *
     * @param newBytes 1 or more; 1 MiB if not set
     * @return this builder
     */
    public Builder firstBucketBytes(long newBytes) {
      firstBytes = requirePositive(newBytes, "firstBucketBytes");
      return this;
    }

    /**
     * Whether buckets are averaged during the backward pass, or all of them in {@link #finish}, on
     * the stream that computes.
     *
     * @param newOverlap true if not set
     * @return this builder
     */
    public Builder overlap(boolean newOverlap) {
      overlap = newOverlap;
      return this;
    }

    /**
     * What is done with gradients that are not ready at the end of a step.
     *
     * @param newMissing {@link Missing#REFUSE} if not set
     * @return this builder
     */
    public Builder missing(Missing newMissing) {
      missing = Objects.requireNonNull(newMissing, "missing");
      return this;
    }

    /**
     * Lets ranks have different numbers of steps, see {@link GradientBuckets#join}. Costs one small
     * kernel or copy in each step.
     *
     * @return this builder
     */
    public Builder unevenSteps() {
      unevenSteps = true;
      return this;
    }

    /**
     * The stream on which gradients are computed and used.
     *
     * @param stream a stream of the sync's device; the device's own if not set
     * @return this builder
     */
    public Builder computedOn(Stream stream) {
      compute = Objects.requireNonNull(stream, "stream");
      return this;
    }

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
    public GradientBuckets build() {
      return new GradientBuckets(this);
    }

    private static long requirePositive(long value, String name) {
      if (value < 1) {
        throw new IllegalArgumentException(name + " must be 1 or more: " + name + "=" + value);
      }
      return value;
    }
  }
}

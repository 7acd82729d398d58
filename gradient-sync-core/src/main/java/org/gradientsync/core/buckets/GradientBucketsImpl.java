package org.gradientsync.core.buckets;

import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.function.ObjIntConsumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.backend.LayoutCheck;
import org.gradientsync.core.rendezvous.Call.Origin;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The buckets of a model: starts their averages, and ends the steps. */
final class GradientBucketsImpl extends GradientBuckets {

  private static final Logger log = LoggerFactory.getLogger(GradientBuckets.class);
  private static final int MAX_BUCKETS = 500; // reducers keep all of them prepared
  private static final int MAX_NAMES = 20; // in an error text
  private static final int MANY_NO_SYNC_STEPS = 500;

  private final BucketSync sync;
  private final BucketsBuilder options;
  private final List<Parameter> parameters;
  private final Stream compute;
  private final CommunicationThread.Lane lane; // or null
  private final int number; // among the sync's bucket sets
  private final IntConsumer nothing = parameter -> {};
  private final Readiness readiness;
  private final AverageChecks checks;
  private BucketStreams streams;
  private BucketSet set;
  private List<Shard> shards; // or null
  private long lastTicket;
  private int started;
  private int noSyncDepth;
  private long noSyncSteps; // steps that have ended since noSync()
  private boolean warnedOfNoSync;
  private boolean joining;
  private boolean finishing; // within finish(averaged)
  private Throwable broken;
  private boolean closed;

  GradientBucketsImpl(BucketsBuilder options) {
    this.options = options;
    sync = options.sync;
    parameters = options.parameters;
    readiness = new Readiness(parameters.size());
    sync.awaitTurn();
    sync.compose(
        Origin.BUILD_BUCKETS,
        () ->
            LayoutCheck.requireSame(
                sync.ownCommunicator(),
                parameters,
                List.of("firstBucketBytes", "bucketBytes", "unevenSteps", "overlap", "sharded"),
                options.firstBytes,
                options.bytes,
                options.unevenSteps ? 1 : 0,
                options.overlap ? 1 : 0,
                options.sharded ? 1 : 0));
    LayoutCheck.requireDifferentNames(parameters, sync.rank());
    if (options.sharded && options.unevenSteps) {
      throw new IllegalArgumentException(
          "sharded buckets cannot have uneven steps: rank="
              + sync.rank()
              + "; give all ranks as many steps, or build without sharded()");
    }
    checks = new AverageChecks(sync, options.sharded);
    number = sync.nextBuckets();
    compute = options.compute == null ? sync.backend().stream() : options.compute;
    boolean needsThread = options.overlap && sync.size() > 1 && sync.blocksHost();
    lane = needsThread ? sync.communicationThread().lane() : null;
    try {
      layOut(Origin.BUILD_BUCKETS);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private BucketLayout layout() {
    return new BucketLayout(
        parameters,
        readiness.order(),
        options.firstBytes,
        options.bytes,
        options.unevenSteps,
        options.sharded ? sync.size() : 1);
  }

  /**
   * @param call the program's
   */
  private void layOut(Origin call) {
    BucketLayout layout = layout();
    int most = options.sharded ? MAX_BUCKETS / 2 : MAX_BUCKETS; // two calls for each bucket
    if (layout.buckets.size() > most) {
      throw new IllegalArgumentException(
          "too many buckets: buckets="
              + layout.buckets.size()
              + ", most="
              + most
              + ", rank="
              + sync.rank()
              + "; raise bucketBytes");
    }
    String reason = "";
    try {
      if (streams == null) {
        streams = new BucketStreams(sync.backend(), sync.blocksHost(), compute, options.overlap);
      }
      set = new BucketSet(sync, parameters, layout, compute, streams, number, options.sharded);
    } catch (GradientSyncException | IllegalArgumentException e) {
      reason = e.getMessage();
    }
    String failure = reason;
    sync.compose(call, () -> Agreement.requireAll(sync.ownCommunicator(), failure));
    for (Bucket bucket : set.buckets) {
      if (bucket.averaged.count() > 0) {
        bucket.prepare(sync);
      }
    }
    if (options.sharded) {
      shards = Arrays.stream(set.buckets).map(bucket -> bucket.shard.own).toList();
    }
    beginStep();
  }

  private void beginStep() {
    readiness.beginStep();
    checks.beginStep();
    started = 0;
    set.beginStep();
  }

  @Override
  public DeviceBuffer gradient(int parameter) {
    return set.gradient(requireParameter(parameter));
  }

  @Override
  public DeviceBuffer weight(int parameter) {
    requireSharded("weight");
    return set.weight(requireParameter(parameter));
  }

  @Override
  public List<Shard> shards() {
    requireSharded("shards");
    return shards;
  }

  @Override
  public int size() {
    return parameters.size();
  }

  @Override
  public int bucketCount() {
    return set.buckets.length;
  }

  @Override
  public int bucketOf(int parameter) {
    return set.layout.bucketOf[requireParameter(parameter)];
  }

  @Override
  public synchronized void ready(int parameter) {
    requireUsable();
    requireParameter(parameter);
    checkDevice();
    if (noSyncDepth > 0) {
      readiness.keep(parameter);
      return;
    }
    if (readiness.isReady(parameter)) {
      throw new IllegalStateException(
          "gradient is ready already: parameter="
              + parameters.get(parameter)
              + ", rank="
              + sync.rank()
              + "; call finish() at the end of each step, noSync() to add several steps up, and"
              + " discard() to give a step up");
    }
    readiness.add(parameter);
    set.bucketOf(parameter).missing--;
    if (options.overlap) {
      startFull();
    }
  }

  /**
   * Throws if an earlier average has failed on the device. Ranks call it in orders of their own.
   */
  private void checkDevice() {
    try {
      sync.check(false);
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
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
          bucket.ticket = lane.submit(bucket.average);
          lastTicket = bucket.ticket;
        } else {
          sync.awaitTurn(); // another model's averages may be running
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

  @Override
  public void finish() {
    finish(nothing, null);
  }

  @Override
  public void finish(IntConsumer averaged) {
    Objects.requireNonNull(averaged, "averaged");
    requireUsable();
    if (options.sharded) {
      throw new IllegalStateException(
          "no rank has all averages of sharded buckets: rank="
              + sync.rank()
              + "; call finish() or finish(ShardUpdate)");
    }
    finish(averaged, null);
  }

  @Override
  public void finish(ShardUpdate update) {
    Objects.requireNonNull(update, "update");
    requireSharded("finish");
    finish(nothing, update);
  }

  /**
   * @param update of the shards, or null
   */
  private void finish(IntConsumer averaged, ShardUpdate update) {
    if (!endStep()) {
      return;
    }
    finishing = true;
    try {
      for (int i = 0; i < set.buckets.length; i++) {
        await(set.buckets[i]);
        for (int parameter : set.buckets[i].parameters) {
          averaged.accept(parameter);
        }
        if (update != null) {
          updateShard(i, update);
        }
      }
      if (update != null) {
        awaitWeights();
      }
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    } finally {
      finishing = false;
    }
    beginStep(); // not earlier: until now, calls that are allowed only between steps throw
    sync.observer().deliver(compute);
    sync.check(true); // on all ranks after the same averages, which are complete
  }

  @Override
  public void update(ShardUpdate update) {
    Objects.requireNonNull(update, "update");
    requireSharded("update");
    requireBetweenSteps("update");
    requireSynchronizing("update");
    if (finishing) {
      throw new IllegalStateException(
          "update() within update(): rank=" + sync.rank() + "; it is called once, after finish()");
    }
    finishing = true;
    try {
      for (int i = 0; i < set.buckets.length; i++) {
        updateShard(i, update);
      }
      awaitWeights();
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    } finally {
      finishing = false;
    }
  }

  @Override
  public double clipByGlobalNorm(double max) {
    if (!(max > 0)) {
      throw new IllegalArgumentException(
          "max must be positive: max=" + max + ", rank=" + sync.rank());
    }
    requireAverages("clipByGlobalNorm");
    return checks.clip(set, max);
  }

  @Override
  public boolean isFinite() {
    requireAverages("isFinite");
    return checks.isFinite(set);
  }

  private void requireAverages(String call) {
    requireBetweenSteps(call);
    requireSynchronizing(call);
  }

  /** Updates this rank's shard of a bucket, and starts the gather of the bucket's weights. */
  private void updateShard(int bucket, ShardUpdate update) {
    BucketShard shard = set.buckets[bucket].shard;
    update.update(shard.own.gradient(), shard.own.weight(), bucket);
    shard.isUpdated();
    if (lane != null) {
      shard.ticket = lane.submit(shard.gather);
      lastTicket = shard.ticket;
    } else {
      sync.awaitTurn();
      shard.gather.run();
    }
  }

  private void awaitWeights() {
    for (Bucket bucket : set.buckets) {
      if (lane != null) {
        awaitLane(bucket.shard.ticket);
      }
      bucket.shard.awaitWeights();
    }
  }

  /** Starts the remaining averages. Returns false if there are none, because of noSync(). */
  private synchronized boolean endStep() {
    requireUsable();
    checkDevice();
    if (finishing) {
      throw new IllegalStateException(
          "finish() within finish(): rank=" + sync.rank() + "; it is called once, after the step");
    }
    if (noSyncDepth > 0) {
      if (++noSyncSteps == MANY_NO_SYNC_STEPS && !warnedOfNoSync) {
        warnedOfNoSync = true;
        log.warn(
            "rank {}: {} steps have ended within noSync(), and nothing has been averaged; was it"
                + " forgotten to close it?",
            sync.rank(),
            noSyncSteps);
      }
      return false;
    }
    if (!readiness.isComplete()) {
      handleMissing();
    }
    startFull();
    readiness.fixOrder();
    return true;
  }

  private void await(Bucket bucket) {
    if (bucket.observation != null && options.overlap) {
      bucket.observation.awaited(compute);
    }
    if (lane != null) {
      awaitLane(bucket.ticket);
    }
    compute.waitFor(bucket.done);
    if (bucket.observation != null) {
      bucket.observation.complete();
      bucket.observation = null;
    }
  }

  private void awaitLane(long ticket) {
    try {
      lane.await(ticket);
    } catch (RuntimeException | Error e) {
      set.forgetObservations(); // the thread has dropped all later buckets
      throw e;
    }
  }

  private void handleMissing() {
    List<Parameter> missing = new ArrayList<>();
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.isKept(i)) {
        missing.add(parameters.get(i));
      }
    }
    if (options.missing == Missing.REFUSE && !missing.isEmpty()) {
      String names =
          missing.size() > MAX_NAMES
              ? missing.subList(0, MAX_NAMES) + " and " + (missing.size() - MAX_NAMES) + " more"
              : missing.toString();
      if (missing.size() == parameters.size()) {
        throw new IllegalStateException( // no average has started, so nothing is broken
            "no gradient is ready: missing="
                + names
                + ", rank="
                + sync.rank()
                + "; call finish() once in each step, after ready() for each parameter, or build"
                + " with missing(Missing.ZERO)");
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
      if (!readiness.isReady(i)) {
        if (!readiness.isKept(i)) {
          set.gradient(i).fillZero();
        }
        ready(i);
      }
    }
  }

  @Override
  public NoSync noSync() {
    requireBetweenSteps("noSync");
    if (noSyncDepth++ == 0) {
      noSyncSteps = 0;
    }
    return new NoSync() {
      private boolean ended;

      @Override
      public void close() {
        noSyncDepth -= ended ? 0 : 1;
        ended = true;
      }
    };
  }

  @Override
  public void discard() {
    requireUsable();
    if (finishing) {
      throw new IllegalStateException(
          "discard() within finish(): rank=" + sync.rank() + "; call it before or after finish()");
    }
    if (noSyncDepth == 0) {
      discardTogether();
    }
    for (Bucket bucket : set.buckets) {
      bucket.flat.fillZero();
    }
    beginStep();
  }

  /**
   * Ends the averages of the step. Other ranks may have started more of them than this one, so all
   * ranks run all. The last rendezvous finds out if another rank has finished the step instead.
   */
  private void discardTogether() {
    if (set.flag != null) {
      throw new IllegalStateException(
          "discard() outside of noSync() with uneven steps, where ranks in join() would still use"
              + " the averages: rank="
              + sync.rank()
              + "; make steps that may be discarded within noSync()");
    }
    try {
      if (options.overlap) {
        startAll();
        for (Bucket bucket : set.buckets) {
          await(bucket);
        }
      }
      sync.meetForDiscard();
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    }
  }

  /** Starts the averages that have not started yet, with zeros. */
  private synchronized void startAll() {
    for (int i = started; i < set.buckets.length; i++) {
      set.buckets[i].flat.fillZero();
    }
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.isReady(i)) {
        ready(i);
      }
    }
  }

  @Override
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
    if (!values.isEmpty()) { // true on all ranks or on none
      sync.broadcast(values, root);
    }
  }

  @Override
  public void gatherState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values) {
    requireSharded("gatherState");
    requireBetweenSteps("gatherState");
    new ShardedState(sync, set, state, root).gather(values);
  }

  @Override
  public void scatterState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values) {
    requireSharded("scatterState");
    requireBetweenSteps("scatterState");
    new ShardedState(sync, set, state, root).scatter(values);
  }

  @Override
  public boolean rebuild() {
    requireBetweenSteps("rebuild");
    requireSynchronizing("rebuild");
    if (options.sharded) {
      throw new IllegalStateException(
          "sharded buckets keep their layout, because the optimizer's state has it: rank="
              + sync.rank()
              + "; list the parameters in the order of the forward pass");
    }
    if (!readiness.isOrderFixed()) {
      throw new IllegalStateException(
          "no step has been finished yet: rank=" + sync.rank() + "; call rebuild() after finish()");
    }
    sync.awaitTurn();
    sync.compose(
        Origin.REBUILD_BUCKETS,
        () -> sync.ownCommunicator().broadcast(IntBuffer.wrap(readiness.order()), 0));
    if (layout().isSameAs(set.layout)) {
      return false;
    }
    try {
      set.close();
      layOut(Origin.REBUILD_BUCKETS);
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    }
    return true;
  }

  @Override
  public long join(Runnable update) {
    requireBetweenSteps("join");
    requireSynchronizing("join");
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

  private void requireSharded(String call) {
    requireUsable();
    if (!options.sharded) {
      throw new IllegalStateException(
          call + "() of buckets without shards: rank=" + sync.rank() + "; build with sharded()");
    }
  }

  private void requireSynchronizing(String call) {
    if (noSyncDepth > 0) {
      throw new IllegalStateException(
          call + "() within noSync(): rank=" + sync.rank() + "; close that first");
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    if (noSyncDepth > 0) {
      log.warn(
          "rank {}: buckets are closed within noSync(), which nobody has closed: what was ready"
              + " since then has not been averaged",
          sync.rank());
    }
    if (lane != null) {
      lane.abandon(lastTicket); // which may be over
    }
    if (set != null) {
      set.forgetObservations();
    }
    Resources.closeAll(set, streams);
  }
}

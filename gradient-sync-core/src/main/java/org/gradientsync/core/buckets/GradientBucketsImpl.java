package org.gradientsync.core.buckets;

import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.function.ObjIntConsumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.Call.Origin;
import org.gradientsync.spi.Resources;

/** The buckets of a model: starts their averages, and ends the steps. */
final class GradientBucketsImpl extends GradientBuckets {
  private final BucketSync sync;
  private final BucketsBuilder options;
  private final List<Parameter> parameters;
  private final Stream compute;
  private final CommunicationThread.Lane lane; // or null
  private final int number; // among the sync's bucket sets
  private final IntConsumer nothing = parameter -> {};
  private final Readiness readiness;
  private final AverageChecks checks;
  private final StepState step;
  private BucketStreams streams;
  private BucketSet set;
  private StepAverages averages;
  private List<Shard> shards; // or null
  private boolean joining;

  GradientBucketsImpl(BucketsBuilder options) {
    this.options = options;
    sync = options.sync;
    parameters = options.parameters;
    readiness = new Readiness(parameters, sync.rank());
    step = new StepState(sync, readiness, options.sharded);
    sync.awaitTurn();
    options.requireSame();
    checks = new AverageChecks(sync, options.sharded);
    number = sync.nextBuckets();
    compute = options.compute == null ? sync.backend().stream() : options.compute;
    boolean needsThread = options.overlap && sync.size() > 1 && sync.ownReducer().blocksHost();
    lane = needsThread ? sync.communicationThread().lane() : null;
    try {
      layOut(Origin.BUILD_BUCKETS, options.layout(readiness.order()));
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /**
   * @param call the program's
   */
  private void layOut(Origin call, BucketLayout layout) {
    String reason = "";
    try {
      if (streams == null) {
        boolean blocks = sync.ownReducer().blocksHost();
        streams = new BucketStreams(sync.backend(), blocks, compute, options.overlap);
      }
      set = new BucketSet(sync, parameters, layout, compute, streams, number, options.sharded);
      averages = new StepAverages(sync, set, compute, options.overlap, lane);
    } catch (GradientSyncException | IllegalArgumentException e) {
      reason = e.getMessage();
    }
    String failure = reason;
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(call, () -> Agreement.requireAll(ranks, failure));
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
    averages.beginStep();
  }

  @Override
  public DeviceBuffer gradient(int parameter) {
    return set.gradient(readiness.require(parameter));
  }

  @Override
  public DeviceBuffer weight(int parameter) {
    step.requireSharded("weight");
    return set.weight(readiness.require(parameter));
  }

  @Override
  public List<Shard> shards() {
    step.requireSharded("shards");
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
    return set.layout.bucketOf[readiness.require(parameter)];
  }

  @Override
  public synchronized void ready(int parameter) {
    step.requireWorking();
    readiness.require(parameter);
    if (step.isNoSync()) {
      readiness.keep(parameter);
      return;
    }
    readiness.add(parameter);
    set.bucketOf(parameter).missing--;
    if (options.overlap) {
      startFull();
    }
  }

  private void startFull() {
    try {
      averages.startFull(!joining);
    } catch (RuntimeException | Error e) {
      step.breaks(e);
      throw e;
    }
  }

  @Override
  public void finish() {
    finish(nothing, null);
  }

  @Override
  public void finish(IntConsumer averaged) {
    Objects.requireNonNull(averaged, "averaged");
    step.requireUsable();
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
    step.requireSharded("finish");
    finish(nothing, update);
  }

  /**
   * @param update of the shards, or null
   */
  private void finish(IntConsumer averaged, ShardUpdate update) {
    if (!endStep()) {
      return;
    }
    complete("finish", averaged, update);
    beginStep(); // not earlier: until now, calls that are allowed only between steps throw
    sync.observer().deliver(compute);
    sync.ownReducer().check(true); // on all ranks after the same averages, which are complete
  }

  @Override
  public void update(ShardUpdate update) {
    Objects.requireNonNull(update, "update");
    step.requireSharded("update");
    step.requireAverages("update");
    step.requireNotEnding("update", "it is called once, after finish()");
    complete("update", null, update);
  }

  /**
   * Completes a step, or the update of its shards.
   *
   * @param call the program's
   * @param averaged accepts each average; null if they are complete
   * @param update of the shards, or null
   */
  private void complete(String call, IntConsumer averaged, ShardUpdate update) {
    step.ending(call);
    try {
      for (int i = 0; i < set.buckets.length; i++) {
        Bucket bucket = set.buckets[i];
        if (averaged != null) {
          averages.await(bucket);
          for (int parameter : bucket.parameters) {
            averaged.accept(parameter);
          }
        }
        if (update != null) {
          update.update(bucket.shard.own.gradient(), bucket.shard.own.weight(), i);
          averages.startGather(bucket.shard);
        }
      }
      if (update != null) {
        averages.awaitWeights();
      }
    } catch (RuntimeException | Error e) {
      step.breaks(e);
      throw e;
    } finally {
      step.ending(null);
    }
  }

  @Override
  public double clipByGlobalNorm(double max) {
    if (!(max > 0)) {
      throw new IllegalArgumentException(
          "max must be positive: max=" + max + ", rank=" + sync.rank());
    }
    step.requireAverages("clipByGlobalNorm");
    return checks.clip(set, max);
  }

  @Override
  public boolean isFinite() {
    step.requireAverages("isFinite");
    return checks.isFinite(set);
  }

  /** Starts the remaining averages. Returns false if there are none, because of noSync(). */
  private synchronized boolean endStep() {
    step.requireWorking();
    step.requireNotEnding("finish", "it is called once, after the step");
    if (step.isNoSync()) {
      step.endNoSyncStep();
      return false;
    }
    if (!readiness.isComplete()) {
      handleMissing();
    }
    startFull();
    readiness.fixOrder();
    return true;
  }

  private void handleMissing() {
    if (options.missing == Missing.REFUSE) {
      requireNothingMissing();
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

  private void requireNothingMissing() {
    IllegalStateException missing = readiness.missing();
    if (missing != null) {
      if (!readiness.isNoneKept()) { // otherwise no average has started, so nothing is broken
        step.breaks(missing);
      }
      throw missing;
    }
  }

  @Override
  public NoSync noSync() {
    step.requireBetweenSteps("noSync");
    return step.noSync();
  }

  @Override
  public void discard() {
    step.requireUsable();
    step.requireNotEnding("discard", "call it before or after finish()");
    if (!step.isNoSync()) {
      discardTogether();
    }
    set.fillZero(0);
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
          averages.await(bucket);
        }
      }
      sync.ownCommunicator().barrier(Origin.DISCARD); // all ranks must have discarded the step
    } catch (RuntimeException | Error e) {
      step.breaks(e);
      throw e;
    }
  }

  /** Starts the averages that have not started yet, with zeros. */
  private synchronized void startAll() {
    set.fillZero(averages.started());
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.isReady(i)) {
        ready(i);
      }
    }
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> values, int root) {
    step.requireUsable();
    Objects.requireNonNull(values, "values");
    options.requireModel(values);
    if (!values.isEmpty()) { // true on all ranks or on none
      sync.broadcast(values, root);
    }
  }

  @Override
  public void gatherState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values) {
    step.requireSharded("gatherState");
    step.requireBetweenSteps("gatherState");
    new ShardedState(sync, set, state, root).gather(values);
  }

  @Override
  public void scatterState(
      List<? extends DeviceBuffer> state, int root, ObjIntConsumer<DeviceBuffer> values) {
    step.requireSharded("scatterState");
    step.requireBetweenSteps("scatterState");
    new ShardedState(sync, set, state, root).scatter(values);
  }

  @Override
  public boolean rebuild() {
    step.requireAverages("rebuild");
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
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(
        Origin.REBUILD_BUCKETS, () -> ranks.broadcast(IntBuffer.wrap(readiness.order()), 0));
    BucketLayout layout = options.layout(readiness.order());
    if (layout.isSameAs(set.layout)) {
      return false;
    }
    try {
      set.close();
      layOut(Origin.REBUILD_BUCKETS, layout);
    } catch (RuntimeException | Error e) {
      step.breaks(e);
      throw e;
    }
    return true;
  }

  @Override
  public long join(Runnable update) {
    step.requireAverages("join");
    if (set.flag == null) {
      throw new IllegalStateException(
          "built without uneven steps: rank=" + sync.rank() + "; build with unevenSteps()");
    }
    joining = true;
    try {
      for (long steps = 0; ; steps++) {
        set.fillZero(0);
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

  @Override
  public synchronized void close() {
    if (step.close()) {
      Resources.closeAll(averages, set, streams);
    }
  }
}

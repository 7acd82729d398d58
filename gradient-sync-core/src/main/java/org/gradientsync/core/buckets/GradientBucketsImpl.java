package org.gradientsync.core.buckets;

import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.function.ObjIntConsumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
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
  private BucketHooks hooks; // or null
  private BucketStreams streams;
  private BucketSet set;
  private StepAverages averages;
  private List<Shard> shards; // or null
  private final Contributions contributions;

  GradientBucketsImpl(BucketsBuilder options) {
    this.options = options;
    sync = options.sync;
    parameters = options.parameters;
    readiness = new Readiness(parameters, sync.rank());
    contributions = new Contributions(options, readiness);
    step = new StepState(sync, readiness, options.sharded);
    sync.awaitTurn();
    options.requireSame();
    checks = new AverageChecks(sync, options.sharded);
    number = sync.nextBuckets();
    compute = options.compute == null ? sync.backend().stream() : options.compute;
    boolean needsThread = options.overlap && sync.size() > 1 && sync.ownReducer().blocksHost();
    lane = needsThread ? sync.communicationThread().lane() : null;
    try {
      hooks = options.hook == null ? null : new BucketHooks(sync, options.hook);
      layOut(Origin.BUILD_BUCKETS, options.layout(readiness.order()));
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /** Lays the buckets out, in a call of the program. */
  private void layOut(Origin call, BucketLayout layout) {
    Throwable failed = null;
    try {
      if (streams == null) {
        boolean single = hooks != null || sync.ownReducer().blocksHost();
        streams = new BucketStreams(sync.backend(), single, compute, options.overlap);
      }
      set = new BucketSet(options, layout, compute, streams, number, hooks);
      averages = new StepAverages(sync, set, contributions, compute, options.overlap, lane);
    } catch (RuntimeException | Error e) {
      failed = e;
    }
    Throwable failure = failed;
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(call, () -> Agreement.requireAll(ranks, failure));
    set.all.forEach(bucket -> bucket.prepare(sync));
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
    add(parameter, true);
  }

  private synchronized void add(int parameter, boolean has) {
    readiness.add(parameter, has);
    set.bucketOf(parameter).missing--;
    if (options.overlap) {
      startFull();
    }
  }

  private void startFull() {
    try {
      averages.startFull();
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
    step.requireNotSharded(
        "no rank has all averages of sharded buckets", "call finish() or finish(ShardUpdate)");
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
    contributions.known();
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
   * Completes a step, or the update of its shards, in a call of the program.
   *
   * @param averaged accepts each average; null if they are complete
   * @param update of the shards, or null
   */
  private void complete(String call, IntConsumer averaged, ShardUpdate update) {
    step.ending(call);
    try {
      boolean updates = averaged != nothing || update != null;
      boolean all = averaged != null && contributions.comeFirst(set.flags, updates);
      if (all) {
        awaitAll();
        contributions.divide(set);
      }
      for (int i = 0; i < set.buckets.length; i++) {
        Bucket bucket = set.buckets[i];
        if (averaged != null) {
          averages.await(bucket);
          for (int parameter : bucket.parameters) {
            if (!all || !contributions.isSkipped(set.flags, parameter)) {
              averaged.accept(parameter);
            }
          }
        }
        if (update != null) {
          averages.update(update, i);
        }
      }
      if (averaged != null && !all && set.flagBucket != null) {
        averages.await(set.flagBucket);
      }
      if (update != null) {
        averages.awaitWeights();
      }
    } catch (Exception | Error e) { // also those that other languages do not declare
      step.breaks(e);
      averages.settle();
      throw e;
    } finally {
      step.ending(null);
    }
  }

  private void awaitAll() {
    for (int i = 0; i < set.all.size(); i++) {
      averages.await(set.all.get(i)); // without an iterator
    }
  }

  @Override
  public double clipByGlobalNorm(double max) {
    checks.requireMax(max);
    step.requireAverages("clipByGlobalNorm");
    return checks.clip(set, max);
  }

  @Override
  public boolean isFinite() {
    step.requireAverages("isFinite");
    return checks.isFinite(set);
  }

  @Override
  protected void rescale(double factor) {
    BucketHooks.rescale(hooks, factor);
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
      step.requireNothingMissing();
    }
    for (int i = 0; i < parameters.size(); i++) {
      if (!readiness.isReady(i)) {
        if (!readiness.isKept(i)) {
          set.gradient(i).fillZero();
        }
        add(i, false);
      }
    }
  }

  @Override
  public boolean isSkipped(int parameter) {
    readiness.require(parameter);
    if (step.isEnding()) { // an update of the program asks
      return contributions.isSkipped(set.flags, parameter);
    }
    step.requireBetweenSteps("isSkipped");
    return contributions.wasSkipped(set.flags, parameter);
  }

  @Override
  public boolean stopRequested() {
    step.requireBetweenSteps("stopRequested");
    return contributions.isStopRequested(set.flags);
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
    contributions.forget(set.flags, step.isNoSync());
    set.fillZero(0);
    beginStep();
  }

  /**
   * Ends the averages of the step. Other ranks may have started more of them than this one, so all
   * ranks run all. The last rendezvous finds out if another rank has finished the step instead.
   */
  private void discardTogether() {
    options.requireNoUneven();
    try {
      if (options.overlap) {
        startAll();
        awaitAll();
        contributions.known(); // those of the discarded step, on all ranks
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
        add(i, false);
      }
    }
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> values, int root) {
    step.requireUsable();
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
    step.requireNotSharded(
        "sharded buckets keep their layout, because the optimizer's state has it",
        "list the parameters in the order of the forward pass");
    step.requireOneStep("rebuild");
    sync.awaitTurn();
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(
        Origin.REBUILD_BUCKETS, () -> ranks.broadcast(IntBuffer.wrap(readiness.order()), 0));
    BucketLayout layout = options.layout(readiness.order());
    if (layout.isSameAs(set.layout)) {
      return false;
    }
    try {
      contributions.forget(set.flags, false);
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
    Objects.requireNonNull(update, "update");
    step.requireAverages("join");
    options.requireUneven();
    if (options.uneven == Uneven.STOP && stopRequested()) {
      return 0;
    }
    contributions.joining(true);
    try {
      for (long steps = 0; ; steps++) {
        set.fillZero(0);
        beginStep(); // what was ready within noSync() is not this step's
        step.requireWorking();
        for (int i = 0; i < parameters.size(); i++) {
          add(i, false);
        }
        finish(nothing);
        if (set.flags.withData() == 0) {
          return steps;
        }
        update.run();
        if (options.uneven == Uneven.STOP) {
          return steps + 1;
        }
      }
    } finally {
      contributions.joining(false);
    }
  }

  @Override
  public void close() {
    step.requireNoCallback(); // before the lock, and without it below: averages may call back
    synchronized (this) {
      if (!step.close()) {
        return;
      }
    }
    Resources.closeAll(averages, set, streams, hooks);
  }
}

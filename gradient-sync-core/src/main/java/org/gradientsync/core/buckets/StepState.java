package org.gradientsync.core.buckets;

import org.gradientsync.GradientBuckets;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the buckets of a model are doing, and so which calls are allowed. */
final class StepState {
  private static final Logger log = LoggerFactory.getLogger(GradientBuckets.class);
  private static final int MANY_NO_SYNC_STEPS = 500;

  private final BucketSync sync;
  private final Readiness readiness;
  private final boolean sharded;
  private String ending; // the call that is ending a step, or null
  private int noSyncDepth;
  private long noSyncSteps; // steps that have ended since noSync()
  private boolean warnedOfNoSync;
  private Throwable broken; // or null
  private boolean closed;

  StepState(BucketSync sync, Readiness readiness, boolean sharded) {
    this.sync = sync;
    this.readiness = readiness;
    this.sharded = sharded;
  }

  /** Records a failure after which all calls throw. */
  void breaks(Throwable failure) {
    broken = failure;
  }

  /** Throws if a hook or a listener makes this call. */
  void requireNoCallback() {
    sync.observer().requireNoListener(sync.rank());
    sync.requireNoHook();
  }

  void requireUsable() {
    requireNoCallback();
    if (closed) {
      throw new IllegalStateException("buckets are closed: rank=" + sync.rank());
    }
    if (broken != null) {
      throw new IllegalStateException(
          "buckets are broken by an earlier failure: rank=" + sync.rank(), broken);
    }
  }

  /**
   * As above; also throws if an earlier average has failed on the device. Ranks call it in orders
   * of their own.
   */
  void requireWorking() {
    requireUsable();
    try {
      sync.ownReducer().check(false);
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    }
  }

  void requireBetweenSteps(String call) {
    requireUsable();
    if (!readiness.isEmpty()) {
      throw new IllegalStateException(
          call + "() in the middle of a step: rank=" + sync.rank() + "; call finish() first");
    }
  }

  /** Throws unless all gradients have been averaged. */
  void requireAverages(String call) {
    requireBetweenSteps(call);
    if (noSyncDepth > 0) {
      throw new IllegalStateException(
          call + "() within noSync(): rank=" + sync.rank() + "; close that first");
    }
  }

  void requireSharded(String call) {
    requireUsable();
    if (!sharded) {
      throw new IllegalStateException(
          call + "() of buckets without shards: rank=" + sync.rank() + "; build with sharded()");
    }
  }

  void requireNotSharded(String why, String remedy) {
    if (sharded) {
      throw new IllegalStateException(why + ": rank=" + sync.rank() + "; " + remedy);
    }
  }

  void requireOneStep(String call) {
    if (!readiness.isOrderFixed()) {
      throw new IllegalStateException(
          "no step has been finished yet: rank=%s; call %s() after finish()"
              .formatted(sync.rank(), call));
    }
  }

  /** Throws if a gradient is not ready; what has started then breaks. */
  void requireNothingMissing() {
    IllegalStateException missing = readiness.missing();
    if (missing != null) {
      if (!readiness.isNoneKept()) { // otherwise no average has started, so nothing is broken
        breaks(missing);
      }
      throw missing;
    }
  }

  /** Throws if a function of the program makes a call while it ends a step. */
  void requireNotEnding(String call, String remedy) {
    if (ending != null) {
      throw new IllegalStateException(
          call + "() within " + ending + "(): rank=" + sync.rank() + "; " + remedy);
    }
  }

  /**
   * Begins or ends a call that ends a step.
   *
   * @param call its name, or null
   */
  void ending(String call) {
    ending = call;
  }

  boolean isEnding() {
    return ending != null;
  }

  boolean isNoSync() {
    return noSyncDepth > 0;
  }

  GradientBuckets.NoSync noSync() {
    if (noSyncDepth++ == 0) {
      noSyncSteps = 0;
    }
    return new GradientBuckets.NoSync() {
      private boolean ended;

      @Override
      public void close() {
        noSyncDepth -= ended ? 0 : 1;
        ended = true;
      }
    };
  }

  /** Counts a step that ends within noSync(). */
  void endNoSyncStep() {
    if (++noSyncSteps == MANY_NO_SYNC_STEPS && !warnedOfNoSync) {
      warnedOfNoSync = true;
      log.warn(
          "rank {}: {} steps have ended within noSync(), and nothing has been averaged; was it"
              + " forgotten to close it?",
          sync.rank(),
          noSyncSteps);
    }
  }

  /** Returns false if it has been closed before. */
  boolean close() {
    if (closed) {
      return false;
    }
    closed = true;
    if (noSyncDepth > 0) {
      log.warn(
          "rank {}: buckets are closed within noSync(), which nobody has closed: what was ready"
              + " since then has not been averaged",
          sync.rank());
    }
    return true;
  }
}

package org.gradientsync.core.buckets;

import org.gradientsync.BucketHook;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.Resources;

/** The program's hook, and the sync for its own calls, which has all ranks. */
final class BucketHooks implements AutoCloseable {
  final BucketSync sync;
  final GradientSync own;
  private final BucketHook hook;
  private final HookWatch watch;

  /** Makes the hook's sync. Collective. */
  BucketHooks(BucketSync sync, BucketHook hook) {
    this.sync = sync;
    this.hook = hook;
    own = sync.split(0, sync.rank());
    watch = new HookWatch(((BucketSync) own).ownCommunicator());
  }

  /**
   * Calls the hook, whose calls have the origin of the bucket.
   *
   * @throws GradientSyncException if the hook has thrown, or was interrupted because it blocked;
   *     the other ranks then throw, too
   */
  void average(BucketHook.FullBucket bucket, Origin origin) {
    BucketSync calls = (BucketSync) own;
    calls.setOrigin(origin);
    boolean blocked = false;
    try {
      watch.begin();
      try {
        hook.average(bucket);
        calls.awaitTurn(); // averages that it has begun in the background
      } finally {
        blocked = watch.end();
      }
      if (blocked) {
        throw new GradientSyncException("it returned when it was interrupted");
      }
      calls.setOrigin(Origin.SYNC);
    } catch (Exception | Error e) { // also those that other languages do not declare
      String what = describe(bucket, blocked) + ", error=" + e;
      // Otherwise other ranks would wait for this rank, in the hook or behind it.
      Resources.closeAllAfter(
          e,
          () -> calls.ownCommunicator().giveUp(what, e),
          own,
          () -> {
            if (!(e instanceof RankLostException) && !calls.ownCommunicator().haveAllThrown(e)) {
              sync.ownCommunicator().giveUp(what, e);
            }
          });
      if (!blocked && e instanceof GradientSyncException) {
        throw e;
      }
      if (!blocked && e instanceof Error) {
        e.addSuppressed(new GradientSyncException(what));
        throw e;
      }
      throw new GradientSyncException(what + "; close the buckets and the sync", e);
    }
  }

  private String describe(BucketHook.FullBucket bucket, boolean blocked) {
    String what =
        blocked
            ? "was interrupted, because it neither returned nor made a call for longer than the"
                + " time-out of "
                + Amounts.time(sync.ownCommunicator().timeout())
            : "has thrown";
    return "the hook of the buckets %s: bucket=%s, rank=%s"
        .formatted(what, bucket.index(), sync.rank());
  }

  /**
   * Tells a hook of a new loss scale.
   *
   * @param hooks or null
   */
  static void rescale(BucketHooks hooks, double factor) {
    if (hooks != null && factor != 1) {
      hooks.hook.rescale(factor);
    }
  }

  void release(BucketHook.FullBucket bucket) {
    hook.release(bucket);
  }

  @Override
  public void close() {
    Resources.closeAll(watch, own);
  }
}

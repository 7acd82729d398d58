package org.gradientsync.core.buckets;

import org.gradientsync.BucketHook;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.Resources;

/** The program's hook, and the sync for its own calls, which has all ranks. */
final class BucketHooks implements AutoCloseable {
  final BucketSync sync;
  final GradientSync own;
  private final BucketHook hook;

  /** Makes the hook's sync. Collective. */
  BucketHooks(BucketSync sync, BucketHook hook) {
    this.sync = sync;
    this.hook = hook;
    own = sync.split(0, sync.rank());
  }

  /**
   * Calls the hook, whose calls have the origin of the bucket.
   *
   * @throws GradientSyncException if the hook has thrown; the other ranks then throw, too
   */
  void average(BucketHook.FullBucket bucket, Origin origin) {
    BucketSync calls = (BucketSync) own;
    calls.setOrigin(origin);
    try {
      hook.average(bucket);
      calls.setOrigin(Origin.SYNC);
    } catch (Exception | Error e) { // also those that other languages do not declare
      String what =
          "the hook of the buckets has thrown: bucket="
              + bucket.index()
              + ", rank="
              + sync.rank()
              + ", error="
              + e;
      // Otherwise other ranks would wait for this rank, in the hook or behind it.
      Resources.closeAllAfter(
          e,
          () -> calls.ownCommunicator().giveUp(what, e),
          own,
          () -> {
            if (!CommunicationThread.endsItsLaneOnly(e)) {
              sync.ownCommunicator().giveUp(what, e);
            }
          });
      if (e instanceof GradientSyncException || e instanceof Error) {
        throw e;
      }
      throw new GradientSyncException(what + "; close the buckets and the sync", e);
    }
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
    own.close();
  }
}

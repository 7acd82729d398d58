package org.gradientsync.core.buckets;

import org.gradientsync.GradientBuckets.ShardUpdate;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.Resources;

/**
 * Runs the averages of a step in the order of the buckets, and the gathers of weights: at once, or
 * on the communication thread.
 */
final class StepAverages implements AutoCloseable {
  private final BucketSync sync;
  private final BucketSet set;
  private final Contributions contributions;
  private final Stream compute;
  private final boolean overlap;
  private final CommunicationThread.Lane lane; // or null
  private long lastTicket;
  private int started;

  /**
   * @param lane for a reducer that blocks the host; otherwise null
   */
  StepAverages(
      BucketSync sync,
      BucketSet set,
      Contributions contributions,
      Stream compute,
      boolean overlap,
      CommunicationThread.Lane lane) {
    this.sync = sync;
    this.set = set;
    this.contributions = contributions;
    this.compute = compute;
    this.overlap = overlap;
    this.lane = lane;
  }

  void beginStep() {
    started = 0;
    set.beginStep();
  }

  /** The number of averages that have started. */
  int started() {
    return started;
  }

  /** Starts the averages of full buckets. The last one takes the {@link StepFlags} along. */
  void startFull() {
    while (started < set.buckets.length && set.buckets[started].missing == 0) {
      Bucket bucket = set.buckets[started++];
      try {
        boolean last = started == set.buckets.length;
        if (last && set.flags != null) {
          contributions.write(set.flags);
        }
        bucket.ready.record(compute);
        bucket.observation =
            sync.observer().begin(bucket.averaged, compute, ReduceOp.AVERAGE, started - 1);
        if (bucket.observation != null) {
          bucket.observation.ready(compute);
        }
        bucket.ticket = run(bucket.average);
        if (last && set.flagBucket != null) {
          set.flagBucket.ready.record(compute);
          set.flagBucket.ticket = run(set.flagBucket.average);
        }
      } catch (RuntimeException | Error e) {
        if (lane == null) {
          set.forgetObservations();
        }
        throw e;
      }
    }
  }

  /** Updates this rank's shard of a bucket, and starts the gather of the bucket's weights. */
  void update(ShardUpdate update, int bucket) {
    BucketShard shard = set.buckets[bucket].shard;
    try {
      if (!contributions.isSkipped(set.flags, shard.own)) {
        update.update(shard.own.gradient(), shard.own.weight(), bucket);
      }
    } catch (Exception | Error e) { // also those that other languages do not declare
      Resources.closeAllAfter(e, this::endUpdate);
      throw e;
    }
    shard.isUpdated();
    shard.ticket = run(shard.gather);
  }

  /**
   * After an update has thrown: meets the others, which may wait in the gather of these weights.
   */
  private void endUpdate() {
    settle();
    if (lane == null || lane.hasSucceeded(lastTicket)) { // otherwise all have met there
      try {
        sync.ownCommunicator().barrier(Origin.UPDATE_THROWN);
      } catch (RuntimeException | Error e) { // perhaps before it has begun
        sync.ownCommunicator().giveUp("an update of sharded buckets has thrown", e);
        throw e;
      }
    }
  }

  /** Returns the ticket of the communication thread. */
  private long run(Runnable work) {
    if (lane != null) {
      lastTicket = lane.submit(work);
    } else {
      sync.awaitTurn(); // another model's averages may be running
      work.run();
    }
    return lastTicket;
  }

  /** Lets the compute stream wait for a bucket's average. */
  void await(Bucket bucket) {
    if (bucket.observation != null && overlap) {
      bucket.observation.awaited(compute);
    }
    awaitLane(bucket.ticket);
    compute.waitFor(bucket.done);
    if (bucket.observation != null) {
      bucket.observation.complete();
      bucket.observation = null;
    }
  }

  /** Lets the compute stream wait for all weights. */
  void awaitWeights() {
    for (Bucket bucket : set.buckets) {
      awaitLane(bucket.shard.ticket);
      bucket.shard.awaitWeights();
    }
  }

  private void awaitLane(long ticket) {
    if (lane == null) {
      return;
    }
    try {
      lane.await(ticket);
    } catch (RuntimeException | Error e) {
      set.forgetObservations(); // the thread has dropped all later buckets
      throw e;
    }
  }

  /** Waits for what has started after the program has failed: the other ranks make it, too. */
  void settle() {
    if (lane != null) {
      lane.settle(lastTicket);
    }
  }

  /** Gives up what is running. */
  @Override
  public void close() {
    if (lane != null) {
      lane.abandon(lastTicket); // which may be over
    }
    set.forgetObservations();
  }
}

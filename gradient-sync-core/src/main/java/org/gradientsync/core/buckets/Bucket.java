package org.gradientsync.core.buckets;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientBuckets;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Gradients that are averaged together: their memory, and the events that order the compute stream
 * and the communication stream.
 */
public final class Bucket implements AutoCloseable {
  final int[] parameters;

  /** The memory as a buffer of the compute stream. */
  final DeviceBuffer flat;

  /** The same memory as a buffer of the communication stream. */
  final DeviceBuffer averaged;

  /** Recorded on the compute stream after the last gradient. */
  final Event ready;

  /** Recorded on the communication stream after the average. */
  final Event done;

  /** The weights and this rank's block, or null if the gradients are not sharded. */
  final BucketShard shard;

  /** What the program's hook sees, or null without one. */
  HookedBucket hooked;

  /** Averages the bucket. Runs when all buckets before this one have been averaged. */
  final Runnable average;

  /** The number of gradients that are not ready. */
  int missing;

  /** The ticket from the communication thread. */
  long ticket;

  /** The observation of this step's average, or null. */
  Observer.Observation observation;

  private final CollectiveCall reduction; // not used if the gradients are sharded
  private final Origin origin;
  private final Resources resources = new Resources();

  /**
   * Allocates the memory, filled with zeros.
   *
   * @param origin of its average
   * @param pieces the parts of parameters in this rank's shard, or null without shards
   */
  Bucket(
      BucketSync sync,
      Origin origin,
      BucketLayout.Place layout,
      Stream compute,
      Stream communication,
      List<GradientBuckets.Piece> pieces) {
    this.origin = origin;
    BackendDevice device = sync.backend();
    parameters = layout.parameters.stream().mapToInt(Integer::intValue).toArray();
    try {
      DeviceBuffer memory = Unclosed.exempt(device.allocate(layout.type, layout.count));
      resources.add(memory); // closing it closes the views, too
      flat = device.on(compute, memory);
      averaged = device.on(communication, memory);
      reduction = CollectiveCall.allReduce(averaged, ReduceOp.AVERAGE);
      ready = resources.add(device.createEvent(false));
      done = resources.add(device.createEvent(false));
      ready.record(device.stream()); // the allocation has enqueued the zeros there
      compute.waitFor(ready);
      communication.waitFor(ready);
      shard =
          pieces == null
              ? null
              : resources.add(
                  new BucketShard(sync, flat, averaged, compute, communication, pieces));
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
    average = () -> average(sync, communication);
  }

  /** Prepares the calls of a step. Collective. */
  void prepare(BucketSync sync) {
    if (hooked != null || averaged.count() == 0) { // on all ranks or on none
      return;
    }
    if (shard == null) {
      sync.prepare(reduction);
    } else {
      shard.prepare(sync);
    }
  }

  private void average(BucketSync sync, Stream communication) {
    communication.waitFor(ready);
    if (observation != null) {
      observation.starts(communication);
    }
    if (hooked != null) {
      hooked.average();
    } else if (averaged.count() > 0) { // true on all ranks or on none
      if (shard == null) {
        sync.runInTurn(reduction, origin);
      } else {
        shard.reduce(sync, origin);
      }
    }
    if (observation != null) {
      observation.ends(communication);
    }
    done.record(communication);
  }

  void beginStep() {
    missing = parameters.length;
  }

  @Override
  public void close() {
    resources.close();
  }
}

package org.gradientsync.core.buckets;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientBuckets;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The weights of a bucket whose gradients are sharded, and this rank's block of both: their memory,
 * and the events that order update and gather.
 */
final class BucketShard implements AutoCloseable {
  /** The weights, laid out as the gradients, as a buffer of the compute stream. */
  final DeviceBuffer weights;

  /** This rank's block of gradients and weights, as buffers of the compute stream. */
  final GradientBuckets.Shard own;

  /** The weights as a buffer of the communication stream. */
  final AbstractDeviceBuffer gathered;

  /** Gathers the weights. Runs when the weights of all buckets before this one are gathered. */
  final Runnable gather;

  /** The ticket of the gather from the communication thread. */
  long ticket;

  private final CollectiveCall reduction; // leaves this rank its block of the gradients
  private final CollectiveCall weightGather; // of all ranks' blocks
  private final Stream compute;
  private final Event afterUpdate; // recorded on the compute stream
  private final Event afterGather; // recorded on the communication stream
  private final Resources resources = new Resources();

  /**
   * Allocates the weights, filled with zeros.
   *
   * @param gradients the bucket's gradients, of the compute stream
   * @param averaged the same memory, of the communication stream
   * @param pieces the parts of parameters in this rank's block
   */
  BucketShard(
      BucketSync sync,
      DeviceBuffer gradients,
      DeviceBuffer averaged,
      Stream compute,
      Stream communication,
      List<GradientBuckets.Piece> pieces) {
    BackendDevice device = sync.backend();
    this.compute = compute;
    long count = gradients.count() / sync.size();
    long first = sync.rank() * count;
    try {
      DeviceBuffer memory = Unclosed.exempt(device.allocate(gradients.type(), gradients.count()));
      resources.add(memory); // closing it closes the views, too
      weights = device.on(compute, memory);
      gathered = (AbstractDeviceBuffer) device.on(communication, memory);
      own =
          new GradientBuckets.Shard(
              gradients.slice(first, count), weights.slice(first, count), List.copyOf(pieces));
      reduction =
          new CollectiveCall(
              Kind.REDUCE_SCATTER,
              averaged,
              averaged.slice(first, count),
              ReduceOp.AVERAGE,
              RankGroup.NO_RANK);
      weightGather =
          new CollectiveCall(
              Kind.ALL_GATHER, gathered.slice(first, count), gathered, null, RankGroup.NO_RANK);
      afterUpdate = resources.add(device.createEvent(false));
      afterGather = resources.add(device.createEvent(false));
      afterUpdate.record(device.stream()); // the allocation has enqueued the zeros there
      compute.waitFor(afterUpdate);
      communication.waitFor(afterUpdate);
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
    gather = () -> gather(sync, communication);
  }

  /** Prepares the calls of a step. Collective. */
  void prepare(BucketSync sync) {
    sync.prepare(reduction);
    sync.prepare(weightGather);
  }

  /** Averages the gradients; this rank gets its block of them. On the communication stream. */
  void reduce(BucketSync sync, Origin origin) {
    sync.runInTurn(reduction, origin);
  }

  /** Marks that the update of this rank's weights is enqueued on the compute stream. */
  void isUpdated() {
    afterUpdate.record(compute);
  }

  private void gather(BucketSync sync, Stream communication) {
    communication.waitFor(afterUpdate);
    if (gathered.count() > 0) { // true on all ranks or on none
      sync.runInTurn(weightGather, Origin.LATER_BUCKET);
    }
    afterGather.record(communication);
  }

  /** Lets the compute stream wait for the weights, whose gather is enqueued. */
  void awaitWeights() {
    compute.waitFor(afterGather);
  }

  @Override
  public void close() {
    resources.close();
  }
}

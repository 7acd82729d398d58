package org.gradientsync.internal.buckets;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * What the ranks find out about the averages of a step, with the same result on all of them. Ranks
 * that have all averages find it alone; if they are sharded, the ranks exchange one number each.
 */
final class AverageChecks {
  private final BucketSync sync;
  private final boolean sharded;
  private HostPieces pieces; // made with the first norm

  AverageChecks(BucketSync sync, boolean sharded) {
    this.sync = sync;
    this.sharded = sharded;
  }

  /** Whether all averages are finite. Collective if sharded. */
  boolean isFinite(BucketSet set) {
    boolean finite = true;
    for (int i = 0; i < set.buckets.length && finite; i++) {
      Bucket bucket = set.buckets[i];
      DeviceBuffer own = sharded ? bucket.shard.own.gradient() : bucket.flat;
      finite = sync.backend().firstNotFinite(own) < 0;
    }
    if (!sharded) {
      return finite;
    }
    long[] found = {finite ? 0 : 1};
    sync.awaitTurn();
    sync.ownCommunicator().allReduce(LongBuffer.wrap(found), ReduceOp.MAX);
    return found[0] == 0;
  }

  /** Scales the averages so that their norm is at most max, and returns the norm before. */
  double clip(BucketSet set, double max) {
    if (pieces == null) {
      pieces = new HostPieces();
    }
    double norm = Math.sqrt(sumOfSquares(set));
    if (norm > max && norm < Double.POSITIVE_INFINITY) {
      double factor = max / norm;
      for (int i = 0; i < parts(set); i++) {
        pieces.multiply(part(set, i), factor);
      }
    }
    return norm;
  }

  private double sumOfSquares(BucketSet set) {
    double own = 0;
    for (int i = 0; i < parts(set); i++) {
      own += pieces.sumOfSquares(part(set, i));
    }
    if (!sharded) {
      return own;
    }
    double[] all = new double[sync.size()];
    sync.awaitTurn();
    sync.ownCommunicator().allGather(DoubleBuffer.wrap(new double[] {own}), DoubleBuffer.wrap(all));
    double sum = 0;
    for (double part : all) {
      sum += part;
    }
    return sum;
  }

  /** The gradients of this rank: its shards, or those of all parameters without the join flag. */
  private static DeviceBuffer part(BucketSet set, int index) {
    BucketShard shard = set.buckets[0].shard;
    return shard == null ? set.gradient(index) : set.buckets[index].shard.own.gradient();
  }

  private static int parts(BucketSet set) {
    return set.buckets[0].shard == null ? set.layout.bucketOf.length : set.buckets.length;
  }
}

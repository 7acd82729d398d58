package org.gradientsync.core.buckets;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;

/**
 * Whether the averages of a step are finite, and their norm: the same on all ranks. Without shards
 * each rank has all averages and computes both alone. With shards it computes them for its own, and
 * the ranks combine their results.
 */
final class AverageChecks {
  private final BucketSync sync;
  private final boolean sharded;
  private Boolean finite; // whether this step's averages are; null if it is not known yet

  AverageChecks(BucketSync sync, boolean sharded) {
    this.sync = sync;
    this.sharded = sharded;
  }

  /** Forgets what was found, as the averages are new. */
  void beginStep() {
    finite = null;
  }

  /**
   * Whether all averages are finite. If they are sharded, this is collective, unless {@link #clip}
   * has found it for this step.
   */
  boolean isFinite(BucketSet set) {
    if (finite == null) {
      finite = isFiniteEverywhere(isFiniteHere(set));
    }
    return finite;
  }

  private boolean isFiniteHere(BucketSet set) {
    for (int i = 0; i < set.buckets.length; i++) {
      if (sync.backend().firstNotFinite(set.averages(i)) >= 0) {
        return false;
      }
    }
    return true;
  }

  private boolean isFiniteEverywhere(boolean here) {
    if (!sharded) {
      return here;
    }
    long[] found = {here ? 0 : 1};
    sync.awaitTurn();
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(Origin.IS_FINITE, () -> ranks.allReduce(LongBuffer.wrap(found), ReduceOp.MAX));
    return found[0] == 0;
  }

  void requireMax(double max) {
    if (!(max > 0)) {
      throw new IllegalArgumentException(
          "max must be positive: max=" + max + ", rank=" + sync.rank());
    }
  }

  /** Scales the averages so that their norm is at most max, and returns the norm before. */
  double clip(BucketSet set, double max) {
    double norm = Math.sqrt(sumOfSquares(set));
    if (norm < Double.POSITIVE_INFINITY) {
      finite = true;
    } else if (Double.isNaN(norm) || !hasDoubles(set)) { // squares of floats are finite
      finite = false;
    }
    if (norm > max && norm < Double.POSITIVE_INFINITY) {
      double factor = max / norm;
      for (int i = 0; i < set.buckets.length; i++) {
        sync.backend().scale(set.averages(i), factor);
      }
    }
    return norm;
  }

  private static boolean hasDoubles(BucketSet set) {
    return Arrays.stream(set.buckets).anyMatch(bucket -> bucket.flat.type() == DataType.FLOAT64);
  }

  private double sumOfSquares(BucketSet set) {
    double own = 0;
    for (int i = 0; i < set.buckets.length; i++) {
      own += sync.backend().sumOfSquares(set.averages(i));
    }
    if (!sharded) {
      return own;
    }
    double[] all = new double[sync.size()];
    sync.awaitTurn();
    DoubleBuffer sum = DoubleBuffer.wrap(new double[] {own});
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(Origin.CLIP, () -> ranks.allGather(sum, DoubleBuffer.wrap(all)));
    double total = 0;
    for (double part : all) {
      total += part;
    }
    return total;
  }
}

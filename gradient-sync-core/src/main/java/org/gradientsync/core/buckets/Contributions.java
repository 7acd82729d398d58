package org.gradientsync.core.buckets;

import java.util.function.IntPredicate;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets.Divisor;
import org.gradientsync.GradientBuckets.Piece;
import org.gradientsync.GradientBuckets.Shard;
import org.gradientsync.GradientBuckets.Uneven;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;

/**
 * What each rank contributes to a step, as the {@link StepFlags} tell all ranks, and what follows:
 * which parameters are skipped, by how many ranks sums are divided, and whether all ranks stop.
 */
final class Contributions {
  private final BucketSync sync;
  private final BucketsBuilder options;
  private final IntPredicate has; // whether this rank has a parameter's gradient
  private boolean joining; // this rank takes part in the others' steps
  private boolean known; // the flags are those of the last step that was averaged
  private boolean asked; // whether all ranks stop after that step
  private boolean stopped; // as all ranks know

  Contributions(BucketsBuilder options, Readiness readiness) {
    this.sync = options.sync;
    this.options = options;
    has = readiness::isKept;
  }

  void joining(boolean newJoining) {
    joining = newJoining;
  }

  /** Before the last average of a step, whose flags then replace those of the step before. */
  void write(StepFlags flags) {
    known = false;
    flags.beginStep();
    if (sync.isStopRequested() || joining && options.uneven == Uneven.STOP) {
      flags.setStop();
    }
    if (options.uneven != null) {
      flags.setData(!joining);
    }
    if (options.skipsMissing()) {
      flags.setParameters(has);
    }
  }

  /** All averages of a step are there. */
  void known() {
    known = true;
    asked = false;
  }

  /**
   * Discards the flags, but first determines whether all ranks stop.
   *
   * @param alone whether other ranks do not call it; then what is known of the last step stays
   *     known, if it needs a call of all ranks
   */
  void forget(StepFlags flags, boolean alone) {
    if (flags != null) {
      isStopRequested(flags);
    }
    known &= flags == null && alone;
  }

  /**
   * Whether the flags must be known before the program gets averages.
   *
   * @param updates whether it gets them from {@code finish}
   */
  boolean comeFirst(StepFlags flags, boolean updates) {
    return flags != null
        && (options.divisor == Divisor.CONTRIBUTING_RANKS || options.skipsMissing() && updates);
  }

  /** Divides by the number of ranks that have contributed, if the program has chosen that. */
  void divide(BucketSet set) {
    for (int i = 0; i < set.buckets.length && options.divisor != Divisor.ALL_RANKS; i++) {
      if (!options.skipsMissing()) {
        scale(set.averages(i), options.uneven == null ? sync.size() : set.flags.withData());
      } else if (options.sharded) {
        Shard own = set.buckets[i].shard.own;
        for (Piece piece : own.pieces()) {
          DeviceBuffer part = own.gradient().slice(piece.shardOffset(), piece.count());
          scale(part, set.flags.withParameter(piece.parameter()));
        }
      } else {
        for (int parameter : set.buckets[i].parameters) {
          scale(set.gradient(parameter), set.flags.withParameter(parameter));
        }
      }
    }
  }

  private void scale(DeviceBuffer averages, long contributing) {
    if (contributing > 0 && contributing < sync.size() && averages.count() > 0) {
      sync.backend().scale(averages, (double) sync.size() / contributing);
    }
  }

  /** Whether no rank had a parameter's gradient, in a step that is being completed. */
  boolean isSkipped(StepFlags flags, int parameter) {
    return options.skipsMissing() && flags.withParameter(parameter) == 0;
  }

  /** The same for the last step that was completed. */
  boolean wasSkipped(StepFlags flags, int parameter) {
    return known && isSkipped(flags, parameter);
  }

  /** Whether a shard has no parameter that is to be updated. */
  boolean isSkipped(StepFlags flags, Shard shard) {
    return options.skipsMissing()
        && shard.pieces().stream().allMatch(piece -> isSkipped(flags, piece.parameter()));
  }

  /** Whether all ranks stop. Collective if there are no flags. */
  boolean isStopRequested(StepFlags flags) {
    if (!stopped && known && !asked) {
      stopped = flags == null ? isAnyStopping() : flags.isStopRequested();
      asked = true; // what comes later is the next step's
      if (stopped) {
        sync.allStop();
      }
    }
    return stopped;
  }

  private boolean isAnyStopping() {
    boolean[] any = {sync.isStopRequested()};
    sync.awaitTurn();
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(Origin.STOP_REQUESTED, () -> any[0] = ranks.any(any[0]));
    return any[0];
  }
}

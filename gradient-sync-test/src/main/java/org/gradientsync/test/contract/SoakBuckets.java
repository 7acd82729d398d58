package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.SoakChecks.check;
import static org.gradientsync.test.contract.SoakChecks.data;
import static org.gradientsync.test.contract.SoakChecks.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;

/** Steps of {@link Soak} with buckets. */
final class SoakBuckets {
  /** No rank asks all to stop. */
  static final int NOBODY = -1;

  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 3_001),
          new Parameter("b", DataType.BFLOAT16, 77),
          new Parameter("c", DataType.FLOAT64, 1_025),
          new Parameter("d", DataType.FLOAT32, 1),
          new Parameter("e", DataType.FLOAT16, 2_222));

  private final int rank;
  private final int ranks;
  private final SplittableRandom shared;
  private final Random own;

  SoakBuckets(GradientSync base, SplittableRandom shared, Random own) {
    rank = base.rank();
    ranks = base.size();
    this.shared = shared;
    this.own = own;
  }

  /**
   * Makes two steps.
   *
   * @param stopping the rank that asks all to stop, or {@link #NOBODY}
   */
  void steps(GradientSync sync, int stopping) {
    int data = data(shared);
    boolean overlap = shared.nextBoolean();
    int left = shared.nextInt(3 * MODEL.size()); // out by all ranks, if there is one
    GradientBuckets.Builder builder =
        GradientBuckets.builder(sync, MODEL)
            .firstBucketBytes(4_000)
            .bucketBytes(12_000)
            .overlap(overlap)
            .missing(GradientBuckets.Missing.SKIP);
    if (shared.nextInt(3) == 0) {
      builder.hook(bucket -> bucket.sync().average(bucket.gradients()));
    }
    try (GradientBuckets buckets = builder.build()) {
      List<Integer> order = new ArrayList<>();
      for (int i = 0; i < MODEL.size(); i++) {
        order.add(i);
      }
      for (int step = 0; step < 2; step++) {
        int now = data + 1000 * step;
        if (rank == stopping) {
          sync.requestStop();
        }
        Collections.shuffle(order, own);
        for (int i : order) {
          Parameter p = MODEL.get(i);
          if (i != left) {
            buckets.gradient(i).copyFrom(Numbers.of(p.type(), rank, now + i, (int) p.count()));
            buckets.ready(i);
          }
        }
        buckets.finish();
        require(buckets.stopRequested() == (stopping != NOBODY), "stop of rank " + stopping);
        for (int i = 0; i < MODEL.size(); i++) {
          Parameter p = MODEL.get(i);
          require(buckets.isSkipped(i) == (i == left), "wrongly skipped or not: " + p);
          if (i == left) {
            continue;
          }
          check(
              Numbers.reduced(p.type(), ReduceOp.AVERAGE, ranks, now + i, (int) p.count()),
              buckets.gradient(i),
              p);
        }
      }
    }
  }
}

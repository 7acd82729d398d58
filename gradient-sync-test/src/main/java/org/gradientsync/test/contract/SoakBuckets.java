package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.SoakChecks.agree;
import static org.gradientsync.test.contract.SoakChecks.check;
import static org.gradientsync.test.contract.SoakChecks.data;
import static org.gradientsync.test.contract.SoakChecks.require;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Divisor;
import org.gradientsync.GradientBuckets.Missing;
import org.gradientsync.GradientBuckets.Piece;
import org.gradientsync.GradientBuckets.Uneven;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.hooks.Compression;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.hooks.TopK;

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

  private static final int STEP = 1_000; // between the data of two steps
  private static final double ROUNDED = 0.01; // of numbers up to 1, to 16 bits, several times

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

  private GradientBuckets.Builder small(GradientSync sync) {
    return GradientBuckets.builder(sync, MODEL)
        .firstBucketBytes(4_000)
        .bucketBytes(12_000)
        .overlap(shared.nextBoolean());
  }

  /** Writes some of a step's gradients, in any order. */
  private void backward(GradientBuckets buckets, int data, IntPredicate has) {
    List<Integer> order = new ArrayList<>(IntStream.range(0, MODEL.size()).boxed().toList());
    Collections.shuffle(order, own);
    for (int i : order) {
      if (has.test(i)) {
        buckets.gradient(i).copyFrom(numbers(i, rank, data));
        buckets.ready(i);
      }
    }
  }

  private static ByteBuffer numbers(int parameter, int rank, int data) {
    Parameter p = MODEL.get(parameter);
    return Numbers.of(p.type(), rank, data + parameter, (int) p.count());
  }

  private static ByteBuffer zeros(int parameter) {
    return Numbers.memory(MODEL.get(parameter).type(), (int) MODEL.get(parameter).count());
  }

  /** The average of a gradient, for which the other ranks have zeros. */
  private ByteBuffer average(int parameter, int data, IntPredicate has) {
    return Numbers.average(
        MODEL.get(parameter).type(),
        IntStream.range(0, ranks)
            .mapToObj(peer -> has.test(peer) ? numbers(parameter, peer, data) : zeros(parameter))
            .toList());
  }

  /** Draws which rank has which gradient. */
  private boolean[][] some() {
    boolean[][] has = new boolean[ranks][MODEL.size()];
    int none = shared.nextInt(3 * MODEL.size()); // no rank has it, if there is one
    boolean others = shared.nextBoolean(); // all ranks have them
    for (boolean[] one : has) {
      for (int i = 0; i < one.length; i++) {
        one[i] = i != none && (others || shared.nextInt(4) > 0);
      }
    }
    return has;
  }

  /**
   * Makes two steps, for which ranks may have some gradients only.
   *
   * @param stopping the rank that asks all to stop, or {@link #NOBODY}
   */
  void steps(GradientSync sync, int stopping) {
    int data = data(shared);
    GradientBuckets.Builder builder = small(sync).missing(Missing.SKIP);
    if (shared.nextInt(3) == 0) {
      builder.hook(bucket -> bucket.sync().average(bucket.gradients()));
    }
    try (GradientBuckets buckets = builder.build()) {
      for (int step = 0; step < 2; step++) {
        int now = data + STEP * step;
        boolean[][] has = some();
        if (rank == stopping) {
          sync.requestStop();
        }
        backward(buckets, now, i -> has[rank][i]);
        buckets.finish();
        require(buckets.stopRequested() == (stopping != NOBODY), "stop of rank " + stopping);
        for (int i = 0; i < MODEL.size(); i++) {
          int parameter = i;
          if (!requireSkipped(buckets, i, has)) {
            check(average(i, now, peer -> has[peer][parameter]), buckets.gradient(i), "gradient");
          }
        }
      }
    }
  }

  private static boolean requireSkipped(GradientBuckets buckets, int parameter, boolean[][] has) {
    boolean skipped = Arrays.stream(has).noneMatch(one -> one[parameter]);
    require(
        buckets.isSkipped(parameter) == skipped, "wrongly skipped or not: " + MODEL.get(parameter));
    return skipped;
  }

  /**
   * Makes three steps with shards, whose weights become the averages of the last step in which a
   * rank had the gradient.
   *
   * @param stopping the rank that asks all to stop, or {@link #NOBODY}
   */
  void shards(GradientSync sync, int stopping) {
    int data = data(shared);
    boolean whole = shared.nextInt(3) == 0;
    boolean exact = whole || shared.nextInt(3) > 0;
    GradientBuckets.Builder builder =
        small(sync)
            .sharded()
            .missing(whole ? Missing.REFUSE : Missing.SKIP)
            .divisor(exact ? Divisor.ALL_RANKS : Divisor.CONTRIBUTING_RANKS);
    ByteBuffer[] weights =
        IntStream.range(0, MODEL.size()).mapToObj(i -> zeros(i)).toArray(ByteBuffer[]::new);
    try (GradientBuckets buckets = builder.build()) {
      for (int step = 0; step < 3; step++) {
        int now = data + STEP * step;
        boolean[][] has = some();
        if (whole) {
          Arrays.stream(has).forEach(one -> Arrays.fill(one, true));
        }
        if (rank == stopping) {
          sync.requestStop();
        }
        backward(buckets, now, i -> has[rank][i]);
        GradientBuckets.ShardUpdate update =
            (gradient, weight, shard) -> {
              for (Piece piece : buckets.shards().get(shard).pieces()) {
                if (!buckets.isSkipped(piece.parameter())) {
                  copy(gradient, weight, piece);
                }
              }
            };
        if (shared.nextBoolean()) {
          buckets.finish(update);
        } else {
          buckets.finish();
          buckets.update(update);
        }
        require(buckets.stopRequested() == (stopping != NOBODY), "stop of rank " + stopping);
        for (int i = 0; i < weights.length; i++) {
          int parameter = i;
          if (!requireSkipped(buckets, i, has)) {
            weights[i] = average(i, now, peer -> has[peer][parameter]);
          }
          if (exact) {
            check(weights[i], buckets.weight(i), "weight");
          } else {
            agree(sync, buckets.weight(i));
          }
        }
      }
    }
  }

  private static void copy(DeviceBuffer from, DeviceBuffer to, Piece piece) {
    ByteBuffer memory = Numbers.memory(from.type(), (int) piece.count());
    try (DeviceBuffer source = from.slice(piece.shardOffset(), piece.count());
        DeviceBuffer target = to.slice(piece.shardOffset(), piece.count())) {
      source.copyTo(memory);
      target.copyFrom(memory);
    }
  }

  /** Makes another number of steps on each rank, until all have no more, or the first one. */
  void unevenSteps(GradientSync sync) {
    int data = data(shared);
    Uneven uneven = Uneven.values()[shared.nextInt(Uneven.values().length)];
    int[] have = IntStream.range(0, ranks).map(peer -> shared.nextInt(4)).toArray();
    int most = IntStream.of(have).max().orElseThrow();
    int all =
        uneven == Uneven.JOIN ? most : Math.min(most, IntStream.of(have).min().orElseThrow() + 1);
    int[] done = {0};
    try (GradientBuckets buckets = small(sync).unevenSteps(uneven).build()) {
      Runnable update =
          () -> {
            for (int i = 0; i < MODEL.size(); i++) {
              check(
                  average(i, data + STEP * done[0], peer -> have[peer] > done[0]),
                  buckets.gradient(i),
                  uneven);
            }
            done[0]++;
          };
      while (done[0] < have[rank] && !buckets.stopRequested()) {
        backward(buckets, data + STEP * done[0], i -> true);
        buckets.finish();
        update.run();
      }
      int before = done[0];
      long joined = buckets.join(update);
      require(
          done[0] == all && joined == all - before,
          "%s: steps of the ranks=%s, made=%s, joined=%s"
              .formatted(uneven, Arrays.toString(have), done[0], joined));
      require(buckets.stopRequested() == (uneven == Uneven.STOP), "stop after " + uneven);
    }
  }

  /** Makes an exact step, and then two with compressed gradients. */
  void compressed(GradientSync sync) {
    boolean sendsAll = shared.nextInt(3) == 0;
    Compression hook =
        sendsAll
            ? new TopK(1)
            : shared.nextBoolean() ? new TopK(0.05) : new PowerSgd(shared.nextInt(1, 4));
    compressed(sync, hook.errorFeedback(shared.nextInt(4) > 0), sendsAll);
  }

  /** As above, so that what the first product on a device allocates is there. */
  void warmUp(GradientSync sync) {
    compressed(sync, new PowerSgd(2), false);
  }

  private void compressed(GradientSync sync, Compression hook, boolean sendsAll) {
    hook.warmUp(1);
    try (GradientBuckets buckets = small(sync).hook(hook).build()) {
      for (int step = 0; step < 3; step++) {
        long data = shared.nextLong();
        for (int i = MODEL.size() - 1; i >= 0; i--) {
          buckets.gradient(i).copyFrom(finite(i, rank, data));
          buckets.ready(i);
        }
        buckets.finish();
        for (int i = 0; i < MODEL.size(); i++) {
          int parameter = i;
          DataType type = MODEL.get(i).type();
          ByteBuffer average =
              Numbers.average(
                  type,
                  IntStream.range(0, ranks)
                      .mapToObj(peer -> finite(parameter, peer, data))
                      .toList());
          if (step == 0) {
            check(average, buckets.gradient(i), hook);
            continue;
          }
          agree(sync, buckets.gradient(i));
          double[] values = Doubles.read(buckets.gradient(i));
          require(Arrays.stream(values).anyMatch(value -> value != 0), "nothing from " + hook);
          double[] exact = Doubles.of(type, average);
          for (int n = 0; n < values.length; n++) {
            double most = sendsAll ? ROUNDED : Double.MAX_VALUE;
            require(
                Math.abs(values[n] - exact[n]) <= most,
                hook + ": index=" + n + ", is=" + values[n] + ", average=" + exact[n]);
          }
        }
      }
    }
  }

  /** A rank's gradient, from -1 to 1. */
  private static ByteBuffer finite(int parameter, int rank, long data) {
    Parameter p = MODEL.get(parameter);
    SplittableRandom random = new SplittableRandom(data + 100L * rank + parameter);
    return Doubles.memory(p.type(), random.doubles(p.count(), -1, 1).toArray());
  }
}

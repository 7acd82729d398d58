package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.Doubles.fill;
import static org.gradientsync.test.contract.Doubles.read;
import static org.gradientsync.test.contract.Doubles.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.DoubleBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Shard;
import org.gradientsync.GradientSync;
import org.gradientsync.LossScaler;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks.RankTask;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests what may happen between averages and update: clipping, and loss scaling. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
@SuppressWarnings("try") // only the end of noSync matters
public abstract class AveragesContract {
  /** More elements than a piece that is copied to the host, too. */
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("embedding", DataType.FLOAT32, 70_001),
          new Parameter("low", DataType.BFLOAT16, 2_003),
          new Parameter("none", DataType.FLOAT64, 0),
          new Parameter("scale", DataType.FLOAT64, 777),
          new Parameter("half", DataType.FLOAT16, 333),
          new Parameter("bias", DataType.FLOAT32, 1));

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Arguments> sizesAndSharding() {
    return sizes().flatMap(n -> Stream.of(Arguments.of(n, true), Arguments.of(n, false)));
  }

  private void run(int ranks, RankTask task) {
    runner().run(ranks, b -> b.timeout(Duration.ofSeconds(20)), task);
  }

  private static GradientBuckets build(GradientSync sync, boolean sharded) {
    GradientBuckets.Builder builder =
        GradientBuckets.builder(sync, MODEL).firstBucketBytes(4_000).bucketBytes(16_000);
    return (sharded ? builder.sharded() : builder).build();
  }

  /** Runs a backward pass and waits for the averages. */
  private static void step(GradientBuckets buckets, int rank, double scale) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      int parameter = i;
      write(
          buckets.gradient(i),
          IntStream.range(0, (int) MODEL.get(i).count())
              .mapToDouble(k -> ((rank * 31 + parameter * 17 + k * 7) % 101 - 50) * scale)
              .toArray());
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** The averages that this rank has. */
  private static List<DeviceBuffer> own(GradientBuckets buckets, boolean sharded) {
    return sharded
        ? buckets.shards().stream().map(Shard::gradient).toList()
        : IntStream.range(0, buckets.size()).mapToObj(buckets::gradient).toList();
  }

  private static double[][] values(List<DeviceBuffer> buffers) {
    return buffers.stream().map(Doubles::read).toArray(double[][]::new);
  }

  private static double norm(double[][] values) {
    return Math.sqrt(Arrays.stream(values).flatMapToDouble(Arrays::stream).map(v -> v * v).sum());
  }

  private static void assertSameEverywhere(GradientSync sync, double value) {
    double[] all = new double[sync.size()];
    sync.communicator().allGather(DoubleBuffer.wrap(new double[] {value}), DoubleBuffer.wrap(all));
    for (double other : all) {
      assertEquals(Double.doubleToRawLongBits(value), Double.doubleToRawLongBits(other));
    }
  }

  @ParameterizedTest
  @MethodSource("sizesAndSharding")
  void clipsAllGradientsByTheirCommonNorm(int ranks, boolean sharded) {
    run(
        ranks,
        sync -> {
          double expected;
          try (GradientBuckets plain = build(sync, false)) {
            step(plain, sync.rank(), 0.01);
            expected = norm(values(own(plain, false)));
          }
          try (GradientBuckets buckets = build(sync, sharded)) {
            List<DeviceBuffer> own = own(buckets, sharded);
            step(buckets, sync.rank(), 0.01);
            double[][] before = values(own);
            double norm = buckets.clipByGlobalNorm(Double.POSITIVE_INFINITY);
            assertEquals(expected, norm, 1e-11 * expected);
            assertSameEverywhere(sync, norm);
            assertEquals(norm, buckets.clipByGlobalNorm(norm));
            assertArrayEquals(before, values(own)); // not larger than the maximum
            double max = norm / 4;
            assertEquals(norm, buckets.clipByGlobalNorm(max));
            for (int i = 0; i < before.length; i++) {
              double[] scaled = Arrays.stream(before[i]).map(v -> v * (max / norm)).toArray();
              DeviceBuffer rounded = sync.allocate(own.get(i).type(), scaled.length);
              write(rounded, scaled);
              assertArrayEquals(read(rounded), read(own.get(i)), "buffer " + i);
            }
            assertEquals(max, buckets.clipByGlobalNorm(max * 2), 1e-2 * max); // rounded to 8 bits
          }
        });
  }

  /** All finite numbers of 16 bits. The product of some is in the middle between two as a float. */
  @ParameterizedTest
  @MethodSource("sizes")
  void clippingRoundsToSixteenBitsByWayOfFloat32(int ranks) {
    run(
        ranks,
        sync -> {
          short[] halves = new short[63_488];
          for (int i = 0; i < halves.length; i++) {
            halves[i] = (short) (i < halves.length / 2 ? i : i - halves.length / 2 + 0x8000);
          }
          List<Parameter> model = List.of(new Parameter("h", DataType.FLOAT16, halves.length));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            buckets.gradient(0).copyFrom(halves);
            buckets.ready(0);
            buckets.finish();
            double norm = buckets.clipByGlobalNorm(Double.POSITIVE_INFINITY);
            double max = 0.7 * norm;
            buckets.clipByGlobalNorm(max);
            short[] clipped = new short[halves.length];
            buckets.gradient(0).copyTo(clipped);
            int twice = 0; // rounded, and so not to the nearest
            for (int i = 0; i < halves.length; i++) {
              double product = Float16.toFloat(halves[i]) * (max / norm);
              short expected = Float16.fromFloat((float) product);
              assertEquals(expected, clipped[i], "element " + i);
              double error = Math.abs(product - Float16.toFloat(expected));
              for (int other = expected - 1; other <= expected + 1; other += 2) {
                twice += Math.abs(product - Float16.toFloat((short) other)) < error ? 1 : 0;
              }
            }
            assertTrue(twice > 0, "no number shows the way");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndSharding")
  void aNormThatIsNotFiniteScalesNothing(int ranks, boolean sharded) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = build(sync, sharded)) {
            for (double odd : new double[] {Double.NaN, Double.NEGATIVE_INFINITY, 1e200}) {
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                fill(buckets.gradient(i), i == 3 ? odd : 2); // 1e200 squared is infinite
                buckets.ready(i);
              }
              buckets.finish();
              double[][] before = values(own(buckets, sharded));
              double norm = buckets.clipByGlobalNorm(1);
              assertEquals(Double.isNaN(odd) ? odd : Double.POSITIVE_INFINITY, norm);
              assertArrayEquals(before, values(own(buckets, sharded)));
              assertEquals(odd == 1e200, buckets.isFinite());
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void theFlagOfUnevenStepsIsNoGradient(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, MODEL).unevenSteps().build()) {
            step(buckets, sync.rank(), 0);
            assertEquals(0, buckets.clipByGlobalNorm(1));
            double[] norms = new double[1];
            if (sync.rank() == 0) {
              step(buckets, 0, ranks);
            }
            long steps = buckets.join(() -> norms[0] = buckets.clipByGlobalNorm(1));
            if (ranks > 1 && sync.rank() == 1) {
              assertEquals(1, steps);
              assertTrue(norms[0] > 100, () -> "norm=" + norms[0]);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndSharding")
  void theScalerSkipsStepsThatAreNotFiniteOnAllRanks(int ranks, boolean sharded) {
    run(
        ranks,
        sync -> {
          LossScaler scaler = new LossScaler(1024, 3);
          try (GradientBuckets buckets = build(sync, sharded)) {
            double[] scales = {1024, 1024, 1024, 512, 512, 512, 1024, 512, 256};
            boolean[] good = {true, true, false, true, true, true, false, false, true};
            for (int step = 0; step < scales.length; step++) {
              assertEquals(scales[step], scaler.scale(), "step " + step);
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                double[] values = new double[(int) MODEL.get(i).count()];
                Arrays.fill(values, 1);
                if (!good[step] && i == 0 && sync.rank() == ranks - 1) {
                  values[step * 9_000] = step == 2 ? Double.NaN : Double.POSITIVE_INFINITY;
                }
                write(buckets.gradient(i), values);
                buckets.ready(i);
              }
              buckets.finish();
              assertEquals(good[step], scaler.step(buckets), "step " + step);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndSharding")
  void needsTheAveragesOfAWholeStep(int ranks, boolean sharded) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = build(sync, sharded)) {
            for (double bad : new double[] {0, -1, Double.NaN}) {
              refused(
                  IllegalArgumentException.class,
                  () -> buckets.clipByGlobalNorm(bad),
                  "max must be positive: max=" + bad);
            }
            try (GradientBuckets.NoSync quiet = buckets.noSync()) {
              refused(IllegalStateException.class, () -> buckets.clipByGlobalNorm(1), "noSync()");
              refused(IllegalStateException.class, buckets::isFinite, "noSync()");
            }
            buckets.ready(0);
            String within = "in the middle of a step";
            refused(IllegalStateException.class, () -> buckets.clipByGlobalNorm(1), within);
            refused(IllegalStateException.class, () -> new LossScaler().step(buckets), within);
            for (int i = 1; i < MODEL.size(); i++) {
              buckets.ready(i);
            }
            buckets.finish();
            assertEquals(0, buckets.clipByGlobalNorm(1));
            assertTrue(buckets.isFinite());
          }
        });
  }

  private static void refused(Class<? extends Exception> type, Runnable call, String part) {
    String text = assertThrows(type, call::run).getMessage();
    assertTrue(text.contains(part), text);
  }
}

package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.Doubles.fill;
import static org.gradientsync.test.contract.Doubles.read;
import static org.gradientsync.test.contract.Doubles.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ObjIntConsumer;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Divisor;
import org.gradientsync.GradientBuckets.Missing;
import org.gradientsync.GradientBuckets.Piece;
import org.gradientsync.GradientBuckets.Shard;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.Parameter;
import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks.RankTask;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests buckets whose optimizer is sharded, with every reducer. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
@SuppressWarnings("try") // only the end of noSync matters
public abstract class ShardedContract {
  /** All types, odd counts, an empty parameter, and ones that fill a bucket alone. */
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("embedding", DataType.FLOAT32, 5_001),
          new Parameter("norm", DataType.FLOAT32, 1),
          new Parameter("low", DataType.BFLOAT16, 2_003),
          new Parameter("none", DataType.FLOAT64, 0),
          new Parameter("scale", DataType.FLOAT64, 777),
          new Parameter("half", DataType.FLOAT16, 333),
          new Parameter("weight", DataType.FLOAT32, 4_099),
          new Parameter("bias", DataType.FLOAT32, 64),
          new Parameter("head", DataType.FLOAT32, 1_500));

  private static final double RATE = 0.01;

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> several() {
    return sizes().filter(n -> n > 1);
  }

  Stream<Arguments> sizesAndOverlap() {
    return sizes().flatMap(n -> Stream.of(Arguments.of(n, true), Arguments.of(n, false)));
  }

  Stream<Arguments> severalAndOverlap() {
    return several().flatMap(n -> Stream.of(Arguments.of(n, true), Arguments.of(n, false)));
  }

  private void run(int ranks, RankTask task) {
    run(ranks, UnaryOperator.identity(), task);
  }

  private void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    runner().run(ranks, b -> options.apply(b.timeout(Duration.ofSeconds(20))), task);
  }

  private static GradientBuckets.Builder small(GradientSync sync) {
    return GradientBuckets.builder(sync, MODEL).firstBucketBytes(4_000).bucketBytes(16_000);
  }

  /** Adam with its state for one buffer of weights. */
  private static final class Adam {
    final DeviceBuffer first;
    final DeviceBuffer second;

    Adam(GradientSync sync, long count) {
      first = sync.allocate(DataType.FLOAT64, count);
      second = sync.allocate(DataType.FLOAT64, count);
    }

    void update(DeviceBuffer gradient, DeviceBuffer weight) {
      update(gradient, weight, new Piece(0, 0, 0, weight.count()));
    }

    void update(DeviceBuffer gradients, DeviceBuffer weights, Piece piece) {
      DeviceBuffer weight = weights.slice(piece.shardOffset(), piece.count());
      DeviceBuffer firsts = first.slice(piece.shardOffset(), piece.count());
      DeviceBuffer seconds = second.slice(piece.shardOffset(), piece.count());
      double[] g = read(gradients.slice(piece.shardOffset(), piece.count()));
      double[] w = read(weight);
      double[] m = read(firsts);
      double[] v = read(seconds);
      for (int i = 0; i < w.length; i++) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
        w[i] -= RATE * m[i] / (Math.sqrt(v[i]) + 1e-8);
      }
      write(weight, w);
      write(firsts, m);
      write(seconds, v);
    }
  }

  private static List<Adam> optimizers(GradientSync sync, GradientBuckets buckets) {
    return buckets.shards().stream().map(s -> new Adam(sync, s.weight().count())).toList();
  }

  private static double number(int rank, int parameter, int index, int step) {
    return ((rank * 31 + parameter * 17 + index * 7 + step * 13) % 101 - 50) / 37.0;
  }

  private static double[] start(int parameter) {
    return numbers(5, parameter, 77);
  }

  private static double[] numbers(int rank, int parameter, int step) {
    return IntStream.range(0, (int) MODEL.get(parameter).count())
        .mapToDouble(i -> number(rank, parameter, i, step))
        .toArray();
  }

  private static List<DeviceBuffer> weights(GradientBuckets buckets) {
    return IntStream.range(0, buckets.size()).mapToObj(buckets::weight).toList();
  }

  /** Writes the first weights on rank 0, and broadcasts them. */
  private static void begin(GradientSync sync, GradientBuckets buckets) {
    for (int i = 0; i < MODEL.size() && sync.rank() == 0; i++) {
      write(buckets.weight(i), start(i));
    }
    buckets.broadcast(weights(buckets), 0);
  }

  private static void backward(GradientBuckets buckets, int rank, int step) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      write(buckets.gradient(i), numbers(rank, i, step));
      buckets.ready(i);
    }
  }

  /** Trains with buckets that are not sharded, whose bits are tested elsewhere. */
  private static ByteBuffer[] unsharded(GradientSync sync, int steps) {
    return unsharded(sync, steps, small(sync), ShardedContract::backward);
  }

  /** The backward pass of a step. */
  private interface Pass {
    void run(GradientBuckets buckets, int rank, int step);
  }

  private static ByteBuffer[] unsharded(
      GradientSync sync, int steps, GradientBuckets.Builder options, Pass pass) {
    List<DeviceBuffer> weights = new ArrayList<>();
    List<Adam> adams = new ArrayList<>();
    for (Parameter parameter : MODEL) {
      weights.add(sync.allocate(parameter.type(), parameter.count()));
      write(weights.get(weights.size() - 1), start(weights.size() - 1));
      adams.add(new Adam(sync, parameter.count()));
    }
    try (GradientBuckets buckets = options.build()) {
      for (int step = 0; step < steps; step++) {
        pass.run(buckets, sync.rank(), step);
        buckets.finish(i -> adams.get(i).update(buckets.gradient(i), weights.get(i)));
      }
    }
    return bits(weights);
  }

  private static ByteBuffer[] bits(List<DeviceBuffer> buffers) {
    return buffers.stream()
        .map(
            buffer -> {
              ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
              buffer.copyTo(memory);
              return memory;
            })
        .toArray(ByteBuffer[]::new);
  }

  private static void assertWeights(ByteBuffer[] expected, GradientBuckets buckets, String what) {
    ByteBuffer[] actual = bits(weights(buckets));
    for (int i = 0; i < expected.length; i++) {
      assertEquals(-1, expected[i].mismatch(actual[i]), what + ", " + MODEL.get(i));
    }
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void trainsToTheBitsOfUnshardedTraining(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          ByteBuffer[] expected = unsharded(sync, 5);
          try (GradientBuckets buckets = small(sync).sharded().overlap(overlap).build()) {
            assertEquals(buckets.bucketCount(), buckets.shards().size());
            assertSame(buckets.shards(), buckets.shards());
            for (int i = 0; i < MODEL.size(); i++) {
              assertEquals(MODEL.get(i).type(), buckets.weight(i).type());
              assertArrayEquals(new double[(int) MODEL.get(i).count()], read(buckets.weight(i)));
            }
            begin(sync, buckets);
            List<Adam> adams = optimizers(sync, buckets);
            for (int step = 0; step < 5; step++) {
              backward(buckets, sync.rank(), step);
              if (step % 2 == 0) {
                buckets.finish((gradient, weight, k) -> adams.get(k).update(gradient, weight));
              } else { // the same in two calls
                buckets.finish();
                buckets.update((gradient, weight, k) -> adams.get(k).update(gradient, weight));
              }
            }
            assertWeights(expected, buckets, "sharded");
          }
        });
  }

  /** Gradient descent with options of the parameter: rate, and a decay of the weights or none. */
  private static void descend(int parameter, DeviceBuffer gradient, DeviceBuffer weight) {
    double decay = parameter % 3 == 0 ? 0 : 0.1 / parameter;
    double rate = RATE * (1 + parameter);
    double[] g = read(gradient);
    double[] w = read(weight);
    for (int i = 0; i < w.length; i++) {
      w[i] -= rate * (g[i] + decay * w[i]);
    }
    write(weight, w);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void eachParameterMayHaveOptionsOfItsOwn(int ranks) {
    run(
        ranks,
        sync -> {
          List<DeviceBuffer> weights = new ArrayList<>();
          for (int i = 0; i < MODEL.size(); i++) {
            weights.add(sync.allocate(MODEL.get(i).type(), MODEL.get(i).count()));
            write(weights.get(i), start(i));
          }
          try (GradientBuckets plain = small(sync).build();
              GradientBuckets buckets = small(sync).sharded().build()) {
            begin(sync, buckets);
            for (int step = 0; step < 3; step++) {
              backward(plain, sync.rank(), step);
              plain.finish(i -> descend(i, plain.gradient(i), weights.get(i)));
              backward(buckets, sync.rank(), step);
              buckets.finish(
                  (gradient, weight, k) -> {
                    for (Piece piece : buckets.shards().get(k).pieces()) {
                      descend(
                          piece.parameter(),
                          gradient.slice(piece.shardOffset(), piece.count()),
                          weight.slice(piece.shardOffset(), piece.count()));
                    }
                  });
            }
            assertWeights(bits(weights), buckets, "by parameter");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void piecesSayWhichParametersAShardHas(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            for (int i = MODEL.size() - 1; i >= 0; i--) {
              buckets.ready(i);
            }
            buckets.finish( // each weight becomes its index in the parameter, plus 1, modulo 100
                (gradient, weight, k) -> {
                  long end = 0;
                  for (Piece piece : buckets.shards().get(k).pieces()) {
                    assertEquals(k, buckets.bucketOf(piece.parameter()));
                    assertTrue(piece.count() > 0 && piece.shardOffset() >= end, piece::toString);
                    end = piece.shardOffset() + piece.count();
                    write(
                        weight.slice(piece.shardOffset(), piece.count()),
                        IntStream.range(0, (int) piece.count())
                            .mapToDouble(n -> (piece.parameterOffset() + n) % 100 + 1)
                            .toArray());
                  }
                  assertTrue(end <= weight.count());
                });
            for (int i = 0; i < MODEL.size(); i++) {
              double[] expected =
                  IntStream.range(0, (int) MODEL.get(i).count())
                      .mapToDouble(n -> n % 100 + 1)
                      .toArray();
              assertArrayEquals(expected, read(buckets.weight(i)), "parameter " + i);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("several")
  void trainsToTheSameBitsWithACompressedWire(int ranks) {
    run(
        ranks,
        builder -> builder.wire(DataType.BFLOAT16),
        sync -> {
          ByteBuffer[] expected = unsharded(sync, 3);
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            begin(sync, buckets);
            List<Adam> adams = optimizers(sync, buckets);
            for (int step = 0; step < 3; step++) {
              backward(buckets, sync.rank(), step);
              buckets.finish((gradient, weight, k) -> adams.get(k).update(gradient, weight));
            }
            assertWeights(expected, buckets, "compressed");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void shardsDivideEachBucketEvenly(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            long[] elements = new long[buckets.bucketCount()];
            for (int i = 0; i < MODEL.size(); i++) {
              elements[buckets.bucketOf(i)] += MODEL.get(i).count();
              fill(buckets.weight(i), sync.rank() + 1);
            }
            List<Shard> shards = buckets.shards();
            for (int k = 0; k < elements.length; k++) {
              long count = shards.get(k).weight().count();
              assertEquals(count, shards.get(k).gradient().count());
              assertTrue(count * ranks >= elements[k], "count=" + count);
              assertEquals(0, count * shards.get(k).weight().type().sizeInBytes() % 256);
            }
            for (int i = MODEL.size() - 1; i >= 0; i--) {
              buckets.ready(i);
            }
            buckets.finish((gradient, weight, k) -> {});
            double[] seen = new double[ranks];
            for (int i = 0; i < MODEL.size(); i++) {
              for (double value : read(buckets.weight(i))) {
                seen[(int) value - 1]++; // the rank whose weight it is
              }
            }
            assertTrue(Arrays.stream(seen).allMatch(n -> n > 0), Arrays.toString(seen));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void accumulatesAndTakesMissingGradientsAsZero(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              small(sync).sharded().overlap(overlap).missing(Missing.ZERO).build()) {
            try (GradientBuckets.NoSync quiet = buckets.noSync()) {
              fill(buckets.gradient(0), 8);
              buckets.ready(0);
              buckets.finish(
                  (gradient, weight, k) -> {
                    throw new AssertionError("no update within noSync()");
                  });
              assertThrows(IllegalStateException.class, () -> buckets.update((g, w, k) -> {}));
            }
            fill(buckets.gradient(2), 4); // and parameter 0 is kept
            buckets.ready(2);
            fill(buckets.gradient(8), Double.NaN); // and not ready: zero
            buckets.finish((gradient, weight, k) -> write(weight, read(gradient)));
            for (int i = 0; i < MODEL.size(); i++) {
              double[] expected = new double[(int) MODEL.get(i).count()];
              Arrays.fill(expected, i == 0 ? 8 : i == 2 ? 4 : 0);
              assertArrayEquals(expected, read(buckets.weight(i)), "parameter " + i);
            }
          }
        });
  }

  private static boolean has(int rank, int parameter, int step) {
    return step == 2 || parameter != 1 + step && (rank + parameter + step) % 3 != 0;
  }

  private static void backwardOfSome(GradientBuckets buckets, int rank, int step) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      if (has(rank, i, step)) {
        write(buckets.gradient(i), numbers(rank, i, step));
        buckets.ready(i);
      }
    }
  }

  /** As {@link #unsharded}, where some steps leave parameters out. */
  private static ByteBuffer[] unshardedOfSome(GradientSync sync, int steps, Divisor divisor) {
    return unsharded(
        sync,
        steps,
        small(sync).missing(Missing.SKIP).divisor(divisor),
        ShardedContract::backwardOfSome);
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void whatNoRankHasReadyKeepsItsWeightsAndMoments(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          for (Divisor divisor : Divisor.values()) {
            ByteBuffer[] expected = unshardedOfSome(sync, 5, divisor);
            try (GradientBuckets buckets =
                small(sync)
                    .sharded()
                    .overlap(overlap)
                    .missing(Missing.SKIP)
                    .divisor(divisor)
                    .build()) {
              begin(sync, buckets);
              List<Adam> adams = optimizers(sync, buckets);
              GradientBuckets.ShardUpdate update =
                  (gradient, weight, shard) -> {
                    int used = 0;
                    for (Piece piece : buckets.shards().get(shard).pieces()) {
                      if (!buckets.isSkipped(piece.parameter())) {
                        adams.get(shard).update(gradient, weight, piece);
                        used++;
                      }
                    }
                    assertTrue(used > 0, "a shard without a parameter to update");
                  };
              for (int step = 0; step < 5; step++) {
                backwardOfSome(buckets, sync.rank(), step);
                if (step % 2 == 0) {
                  buckets.finish(update);
                } else {
                  buckets.finish();
                  buckets.update(update);
                }
                int now = step;
                for (int i = 0; i < MODEL.size(); i++) {
                  int parameter = i;
                  assertEquals(
                      IntStream.range(0, ranks).noneMatch(rank -> has(rank, parameter, now)),
                      buckets.isSkipped(i),
                      "step " + step + ", " + MODEL.get(i));
                }
                assertFalse(buckets.stopRequested());
              }
              assertWeights(expected, buckets, divisor + ", overlap=" + overlap);
            }
          }
        });
  }

  /** Two buckets: in the first one, each rank's shard is a parameter. */
  private static GradientBuckets.Builder twoBuckets(GradientSync sync) {
    List<Parameter> model = new ArrayList<>();
    model.add(new Parameter("all", DataType.FLOAT32, 64L * sync.size()));
    for (int i = 0; i < sync.size(); i++) {
      model.add(new Parameter("part " + i, DataType.FLOAT32, 64));
    }
    return GradientBuckets.builder(sync, model)
        .sharded()
        .firstBucketBytes(256L * sync.size())
        .bucketBytes(1);
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void anUpdateThatThrowsOnAllRanksLeavesTheSyncUsable(int ranks, boolean overlap) {
    ArithmeticException mine = new ArithmeticException("on purpose");
    run(
        ranks,
        sync -> {
          for (int failing = 0; failing < 2; failing++) {
            int at = failing;
            try (GradientBuckets buckets = twoBuckets(sync).overlap(overlap).build()) {
              assertEquals(2, buckets.bucketCount());
              IntStream.range(0, buckets.size()).forEach(buckets::ready);
              Executable finish =
                  () ->
                      buckets.finish(
                          (gradient, weight, shard) -> {
                            if (shard == at) {
                              throw mine;
                            }
                          });
              assertSame(mine, assertThrows(ArithmeticException.class, finish));
            }
            sync.barrier();
          }
          assertArrayEquals(new Throwable[0], mine.getSuppressed());
        });
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void anUpdateThatThrowsOnOneRankEndsTheOthers(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          GradientSync part = sync.split(0, sync.rank());
          boolean last = sync.rank() == ranks - 1;
          try (GradientBuckets buckets = twoBuckets(part).overlap(overlap).build()) {
            IntStream.range(0, buckets.size()).forEach(buckets::ready);
            Executable finish =
                () -> {
                  buckets.finish(
                      (gradient, weight, shard) -> {
                        if (last && shard == 1) {
                          throw new ArithmeticException("on purpose");
                        }
                      });
                  read(buckets.weight(0)); // a GPU may only have enqueued the gather
                };
            if (last) {
              assertThrows(ArithmeticException.class, finish);
            } else {
              GradientSyncException e = assertThrows(GradientSyncException.class, finish);
              assertTrue(e.getMessage().contains("update"), e.toString());
              assertTrue(e.getMessage().contains("rank " + (ranks - 1)), e.toString());
            }
          }
          sync.barrier(); // no rank has left before the others have thrown
        });
  }

  /** What is skipped depends on the shard, so that ranks may throw in different buckets. */
  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void updatesThatThrowInDifferentBucketsDoNotWaitForEachOther(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          if (sync.reducer().equals("peer")) {
            return; // closing the buckets throws, as the gather of some ranks is enqueued
          }
          GradientSync part = sync.split(0, sync.rank());
          try (GradientBuckets buckets =
              twoBuckets(part).overlap(overlap).missing(Missing.SKIP).build()) {
            Piece own = buckets.shards().get(0).pieces().get(0);
            buckets.ready(0);
            if (sync.rank() == 0) {
              buckets.ready(own.parameter());
            }
            int[] failed = {-1};
            Executable finish =
                () ->
                    buckets.finish(
                        (gradient, weight, shard) -> {
                          failed[0] = shard;
                          throw new ArithmeticException("on purpose");
                        });
            RuntimeException e = assertThrows(RuntimeException.class, finish);
            if (sync.rank() == 0) {
              assertInstanceOf(ArithmeticException.class, e);
              assertEquals(0, failed[0]);
            } else if (failed[0] < 0) { // it has not come to the second bucket
              assertTrue(e.getMessage().contains("has thrown on rank 0"), e.toString());
            } else {
              assertInstanceOf(ArithmeticException.class, e);
              assertEquals(1, failed[0]);
            }
            sync.barrier(); // no rank has left before the others have thrown
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allRanksStopAfterTheSameStep(int ranks) {
    run(
        ranks,
        sync -> {
          for (Missing missing : new Missing[] {Missing.REFUSE, Missing.SKIP}) {
            try (GradientSync part = sync.split(0, sync.rank());
                GradientBuckets buckets = small(part).sharded().missing(missing).build()) {
              begin(part, buckets);
              for (int step = 0; step < 4; step++) {
                backward(buckets, part.rank(), step);
                buckets.finish((gradient, weight, shard) -> {});
                if (part.rank() == 0) {
                  buckets.noSync(buckets::discard);
                }
                String what = missing + ", step " + step;
                assertEquals(step >= 2, buckets.stopRequested(), what);
                if (step == 1 && part.rank() == ranks - 1) {
                  part.requestStop();
                }
                boolean stops = step >= 2;
                buckets.noSync(() -> assertEquals(stops, buckets.stopRequested(), what));
              }
            }
          }
        });
  }

  /** As where the root's disk is full. */
  @ParameterizedTest
  @MethodSource("sizes")
  void aStateThatCannotBeSavedEndsNothing(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            List<DeviceBuffer> state = buckets.shards().stream().map(Shard::weight).toList();
            Error full = new Error("disk full");
            Executable gather =
                () ->
                    buckets.gatherState(
                        state,
                        0,
                        (values, parameter) -> {
                          throw full;
                        });
            if (sync.rank() == 0) {
              assertSame(full, assertThrows(Error.class, gather));
            } else {
              assertDoesNotThrow(gather);
            }
            backward(buckets, sync.rank(), 0);
            buckets.finish();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void aStepThatIsDiscardedChangesNothing(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).sharded().overlap(overlap).build()) {
            for (int step = 1; step < 4; step++) {
              for (int i = MODEL.size() - 1; i > sync.rank() + step; i--) {
                fill(buckets.gradient(i), 100);
                buckets.ready(i);
              }
              buckets.discard();
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                double[] expected = new double[(int) MODEL.get(i).count()];
                assertArrayEquals(expected, read(buckets.gradient(i)), "gradient " + i);
                Arrays.fill(expected, step - 1);
                assertArrayEquals(expected, read(buckets.weight(i)), "weight " + i);
                fill(buckets.gradient(i), step);
                buckets.ready(i);
              }
              buckets.finish((gradient, weight, k) -> write(weight, read(gradient)));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void anUpdateThatIsLeftOutChangesNothing(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          ByteBuffer[] expected = unsharded(sync, 2);
          try (GradientBuckets buckets = small(sync).sharded().overlap(overlap).build()) {
            begin(sync, buckets);
            List<Adam> adams = optimizers(sync, buckets);
            for (int step = -1; step < 2; step++) {
              backward(buckets, sync.rank(), step);
              buckets.finish();
              if (step >= 0) {
                buckets.update((gradient, weight, k) -> adams.get(k).update(gradient, weight));
              }
            }
            assertWeights(expected, buckets, "left out");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void stateIsGatheredByParameterAndScatteredToOtherBuckets(int ranks) {
    run(
        ranks,
        sync -> {
          int root = ranks - 1;
          double[][] saved = new double[MODEL.size()][];
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            begin(sync, buckets);
            List<DeviceBuffer> state = buckets.shards().stream().map(Shard::weight).toList();
            buckets.gatherState(
                state, root, (v, i) -> assertArrayEquals(read(buckets.weight(i)), read(v)));
            List<DeviceBuffer> wide = new ArrayList<>();
            for (DeviceBuffer weight : state) { // what a state of float64 beside the weights is
              wide.add(sync.allocate(DataType.FLOAT64, weight.count()));
              write(wide.get(wide.size() - 1), read(weight));
            }
            buckets.gatherState(wide, root, (values, i) -> saved[i] = read(values));
            for (int i = 0; i < MODEL.size(); i++) {
              assertArrayEquals(sync.rank() == root ? read(buckets.weight(i)) : null, saved[i]);
            }
          }
          try (GradientBuckets other =
              GradientBuckets.builder(sync, MODEL).firstBucketBytes(1).sharded().build()) {
            List<DeviceBuffer> wide = new ArrayList<>();
            for (Shard shard : other.shards()) {
              wide.add(sync.allocate(DataType.FLOAT64, shard.weight().count()));
              fill(wide.get(wide.size() - 1), 99);
            }
            other.scatterState(wide, root, (values, i) -> write(values, saved[i]));
            for (int i = MODEL.size() - 1; i >= 0; i--) {
              other.ready(i);
            }
            other.finish((gradient, weight, k) -> write(weight, read(wide.get(k))));
            begin(sync, other); // the same as what was scattered?
            ByteBuffer[] expected = bits(weights(other));
            other.update((gradient, weight, k) -> write(weight, read(wide.get(k))));
            assertWeights(expected, other, "scattered");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void ranksGoOnIfStateCannotBeReadOrWritten(int ranks) {
    run(
        ranks,
        sync -> {
          int root = ranks - 1;
          UncheckedIOException mine = new UncheckedIOException(new IOException("no file"));
          ObjIntConsumer<DeviceBuffer> failing =
              (values, i) -> {
                if (i == MODEL.size() / 2) {
                  throw mine;
                }
              };
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            begin(sync, buckets);
            List<DeviceBuffer> state = buckets.shards().stream().map(Shard::weight).toList();
            Executable gathers = () -> buckets.gatherState(state, root, failing);
            Executable scatters = () -> buckets.scatterState(state, root, failing);
            if (sync.rank() == root) {
              assertSame(mine, assertThrows(UncheckedIOException.class, gathers));
              assertSame(mine, assertThrows(UncheckedIOException.class, scatters));
            } else {
              assertDoesNotThrow(gathers);
              String text = assertThrows(UnavailableException.class, scatters).getMessage();
              assertTrue(text.contains("no file (rank " + root + ")"), text);
            }
            sync.barrier();
          }
        });
  }

  /** As if the root had no memory for a whole bucket. */
  @ParameterizedTest
  @MethodSource("sizes")
  void ranksGoOnIfOneCannotPrepareForAState(int ranks) {
    run(
        ranks,
        sync -> {
          int root = ranks - 1;
          GradientSyncException mine = new GradientSyncException("no memory");
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            begin(sync, buckets);
            List<DeviceBuffer> state = buckets.shards().stream().map(Shard::weight).toList();
            List<DeviceBuffer> failing =
                new AbstractList<>() {
                  private int reads; // each buffer is read once to be checked

                  @Override
                  public DeviceBuffer get(int i) {
                    if (sync.rank() == root && ++reads > state.size()) {
                      throw mine;
                    }
                    return state.get(i);
                  }

                  @Override
                  public int size() {
                    return state.size();
                  }
                };
            Executable gathers = () -> buckets.gatherState(failing, root, (values, i) -> {});
            if (sync.rank() == root) {
              assertSame(mine, assertThrows(GradientSyncException.class, gathers));
            } else {
              String text = assertThrows(UnavailableException.class, gathers).getMessage();
              assertTrue(text.contains("no memory (rank " + root + ")"), text);
            }
            sync.barrier();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void refusesWhatShardsCannotDo(int ranks) {
    run(
        ranks,
        sync -> {
          refused(
              IllegalArgumentException.class,
              () -> small(sync).sharded().unevenSteps().build(),
              "sharded buckets cannot have uneven steps");
          try (GradientBuckets plain = small(sync).build()) {
            String without = "of buckets without shards: rank=" + sync.rank();
            refused(IllegalStateException.class, () -> plain.weight(0), "weight() " + without);
            refused(IllegalStateException.class, plain::shards, without);
            refused(IllegalStateException.class, () -> plain.finish((g, w, k) -> {}), without);
            refused(IllegalStateException.class, () -> plain.update((g, w, k) -> {}), without);
            refused(
                IllegalStateException.class,
                () -> plain.gatherState(List.of(), 0, (v, i) -> {}),
                without);
          }
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            refused(
                IllegalStateException.class,
                () -> buckets.finish(i -> {}),
                "no rank has all averages");
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.weight(MODEL.size()));
            refused(
                IllegalArgumentException.class,
                () -> buckets.scatterState(List.of(), 0, (v, i) -> {}),
                "not a state of the shards: index=0, is=none, count=");
            backward(buckets, sync.rank(), 0);
            refused(
                IllegalStateException.class,
                () -> buckets.update((g, w, k) -> {}),
                "update() in the middle of a step");
            buckets.finish();
            refused(IllegalStateException.class, buckets::rebuild, "keep their layout");
            refused(IllegalStateException.class, () -> buckets.join(() -> {}), "uneven");
            buckets.update(
                (gradient, weight, k) ->
                    refused(
                        IllegalStateException.class,
                        () -> buckets.update((g, w, i) -> {}),
                        "update() within update()"));
            IllegalStateException mine = new IllegalStateException("mine");
            backward(buckets, sync.rank(), 1);
            assertSame(
                mine,
                assertThrows(
                    IllegalStateException.class,
                    () ->
                        buckets.finish(
                            (gradient, weight, k) -> {
                              if (k == buckets.bucketCount() - 1) {
                                throw mine;
                              }
                            })));
            assertSame(mine, assertThrows(IllegalStateException.class, buckets::finish).getCause());
            sync.barrier(); // waits for the gathers, which other ranks take part in
          }
        });
  }

  @ParameterizedTest
  @MethodSource("several")
  void ranksThatDisagreeOnShardsThrow(int ranks) {
    run(
        ranks,
        sync -> {
          GradientBuckets.Builder builder = small(sync);
          refused(
              MismatchedCallException.class,
              () -> (sync.rank() == 0 ? builder.sharded() : builder).build(),
              "sharded=" + (sync.rank() == 0 ? "1" : "0"));
        });
  }

  @ParameterizedTest
  @MethodSource("several")
  void gradientsThatAreNotFiniteAreNamed(int ranks) {
    run(
        ranks,
        builder -> builder.requireFinite(true),
        sync -> {
          try (GradientBuckets buckets = small(sync).sharded().build()) {
            backward(buckets, sync.rank(), 0);
            buckets.finish();
            refused(
                NotFiniteException.class,
                () -> {
                  for (int i = MODEL.size() - 1; i >= 0; i--) {
                    fill(buckets.gradient(i), i == 6 && sync.rank() == 1 ? Double.NaN : 1);
                    buckets.ready(i);
                  }
                  buckets.finish((gradient, weight, k) -> read(weight));
                },
                "rank 1");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void allocatesNothingWhenWarm(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          ThreadMXBean bean = (ThreadMXBean) ManagementFactory.getThreadMXBean();
          GradientBuckets.ShardUpdate nothing = (gradient, weight, k) -> {};
          try (GradientBuckets buckets = small(sync).sharded().overlap(overlap).build()) {
            for (int step = 0; step < 50; step++) {
              emptyStep(buckets, nothing);
            }
            bean.getCurrentThreadAllocatedBytes(); // loads classes
            long least = Long.MAX_VALUE;
            // the JIT may still be compiling
            for (int round = 0; round < 10 && sync.communicator().any(least >= 2_000); round++) {
              long before = bean.getCurrentThreadAllocatedBytes();
              for (int step = 0; step < 200; step++) {
                emptyStep(buckets, nothing);
              }
              least = Math.min(least, bean.getCurrentThreadAllocatedBytes() - before);
            }
            assertTrue(least < 2_000, "bytes in 200 steps: " + least);
            sync.barrier();
          }
        });
  }

  private static void emptyStep(GradientBuckets buckets, GradientBuckets.ShardUpdate update) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      buckets.ready(i);
    }
    buckets.finish(update);
  }

  private static void refused(Class<? extends Exception> type, Runnable call, String... parts) {
    String text = assertThrows(type, call::run).getMessage();
    for (String part : parts) {
      assertTrue(text.contains(part), text);
    }
  }
}

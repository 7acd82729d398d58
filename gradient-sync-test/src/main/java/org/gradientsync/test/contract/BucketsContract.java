package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Divisor;
import org.gradientsync.GradientBuckets.Missing;
import org.gradientsync.GradientBuckets.Uneven;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests what {@link GradientBuckets} promise with every reducer. With a reducer that does not block
 * the host, a failure may show only when the host waits for the averages. So failures are expected
 * from whole steps.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
@SuppressWarnings("try") // some tests close resources early; only the end of noSync matters
public abstract class BucketsContract {
  private static final DataType[] TYPES = {
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64
  };

  /**
   * All types, an empty parameter, parameters smaller than the number of ranks, and ones that fill
   * a bucket alone.
   */
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("embedding", DataType.FLOAT32, 9_001),
          new Parameter("norm", DataType.FLOAT32, 1),
          new Parameter("low", DataType.BFLOAT16, 2_003),
          new Parameter("none", DataType.FLOAT64, 0),
          new Parameter("scale", DataType.FLOAT64, 777),
          new Parameter("half", DataType.FLOAT16, 1_333),
          new Parameter("weight", DataType.FLOAT32, 4_099),
          new Parameter("bias", DataType.FLOAT32, 64),
          new Parameter("head", DataType.FLOAT32, 1_500));

  private static final List<Parameter> FLOATS =
      List.of(
          new Parameter("a", DataType.FLOAT32, 700),
          new Parameter("b", DataType.FLOAT32, 3),
          new Parameter("c", DataType.FLOAT32, 2_000),
          new Parameter("d", DataType.FLOAT32, 0),
          new Parameter("e", DataType.FLOAT32, 500));

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

  Stream<Arguments> sizesAndTypes() {
    return sizes().flatMap(n -> Arrays.stream(TYPES).map(t -> Arguments.of(n, t)));
  }

  /** {@return the syncs' time-out: how long a rank waits for another one} */
  protected Duration timeout() {
    return Duration.ofSeconds(20);
  }

  /** Runs with a short time-out, because some tests lose a rank on purpose. */
  private void run(int ranks, RankTask task) {
    runner().run(ranks, b -> b.timeout(timeout()), task);
  }

  private static GradientBuckets.Builder small(GradientSync sync, List<Parameter> model) {
    return GradientBuckets.builder(sync, model).firstBucketBytes(4_000).bucketBytes(16_000);
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void averagesBitExactlyInAnyReadyOrder(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            assertEquals(MODEL.size(), buckets.size());
            assertTrue(buckets.bucketCount() >= 5, () -> "buckets: " + buckets.bucketCount());
            for (int i = 0; i < MODEL.size(); i++) {
              DeviceBuffer gradient = buckets.gradient(i);
              assertEquals(MODEL.get(i).type(), gradient.type());
              assertEquals(MODEL.get(i).count(), gradient.count());
              assertBits(
                  Numbers.memory(gradient.type(), (int) gradient.count()), gradient, "at first");
            }
            for (int step = 0; step < 6; step++) {
              for (int i : order(MODEL.size(), 10 * step + sync.rank())) {
                write(sync, buckets, MODEL, i, step);
                buckets.ready(i);
              }
              buckets.finish();
              assertAverages(sync, buckets, MODEL, step);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void threadsMayCallReadyConcurrently(int ranks, boolean overlap) {
    int threads = 3;
    List<Parameter> model =
        IntStream.range(0, 24)
            .mapToObj(i -> new Parameter("p" + i, DataType.FLOAT32, 60 + i))
            .toList();
    run(
        ranks,
        sync -> {
          ExecutorService backward = Executors.newFixedThreadPool(threads);
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, model)
                  .firstBucketBytes(500)
                  .bucketBytes(3000)
                  .overlap(overlap)
                  .build()) {
            for (int step = 0; step < 200; step++) {
              int number = step;
              List<Callable<Object>> parts = new ArrayList<>();
              for (int part = 0; part < threads; part++) {
                int last = model.size() - 1 - part;
                parts.add(
                    () -> {
                      for (int i = last; i >= 0; i -= threads) {
                        write(sync, buckets, model, i, number);
                        buckets.ready(i);
                      }
                      return null;
                    });
              }
              for (Future<Object> part : backward.invokeAll(parts)) {
                part.get();
              }
              buckets.finish();
              assertAverages(sync, buckets, model, step);
            }
          } finally {
            backward.shutdown();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void finishThrowsIfNothingIsReadyOrIfNested(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            for (int step = 0; step < 3; step++) {
              String early =
                  assertThrows(IllegalStateException.class, buckets::finish).getMessage();
              assertTrue(early.startsWith("no gradient is ready: missing=["), early);
              for (int i = 0; i < MODEL.size(); i++) {
                write(sync, buckets, MODEL, i, step);
                buckets.ready(i);
              }
              List<String> within = new ArrayList<>();
              buckets.finish(
                  i ->
                      within.add(
                          assertThrows(IllegalStateException.class, buckets::finish).getMessage()));
              assertEquals(MODEL.size(), within.size());
              assertTrue(
                  within.get(0).startsWith("finish() within finish(): rank="), within.get(0));
              assertAverages(sync, buckets, MODEL, step);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void acceptsComputeStreamOfCaller(int ranks) {
    run(
        ranks,
        sync -> {
          try (var stream = ((BackendDevice) sync.device()).createStream(true);
              GradientBuckets buckets = small(sync, MODEL).computedOn(stream).build()) {
            for (int step = 0; step < 3; step++) {
              step(sync, buckets, MODEL, step);
              assertAverages(sync, buckets, MODEL, step);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void averagesOneHugeAndManyTinyParameters(int ranks) {
    List<Parameter> model = new ArrayList<>();
    model.add(new Parameter("huge", DataType.FLOAT32, 300_001));
    for (int i = 0; i < 100; i++) {
      model.add(new Parameter("tiny " + i, DataType.FLOAT32, i % 5));
    }
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            assertEquals(1, buckets.bucketCount()); // the tiny parameters do not fill the first MiB
            step(sync, buckets, model, 1);
            assertAverages(sync, buckets, model, 1);
          }
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, model).firstBucketBytes(1).bucketBytes(1).build()) {
            // Parameters without elements do not start a bucket of their own.
            assertEquals(81, buckets.bucketCount());
            step(sync, buckets, model, 2);
            assertAverages(sync, buckets, model, 2);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void acceptsEmptyParameters(int ranks) {
    List<Parameter> model =
        List.of(
            new Parameter("x", DataType.FLOAT32, 0),
            new Parameter("y", DataType.FLOAT32, 0),
            new Parameter("z", DataType.BFLOAT16, 0));
    run(
        ranks,
        sync -> {
          try (GradientBuckets plain = GradientBuckets.builder(sync, model).build();
              GradientBuckets uneven = GradientBuckets.builder(sync, model).unevenSteps().build()) {
            step(sync, plain, model, 0);
            assertEquals(0, plain.gradient(1).count());
            for (int step = 0; step < sync.rank(); step++) {
              step(sync, uneven, model, step);
            }
            assertEquals(ranks - 1L - sync.rank(), uneven.join(() -> {}));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void finishReportsAveragesInBucketOrder(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            for (int i : order(MODEL.size(), sync.rank())) {
              write(sync, buckets, MODEL, i, 3);
              buckets.ready(i);
            }
            List<Integer> seen = new ArrayList<>();
            buckets.finish(
                i -> {
                  assertAverage(sync, buckets, MODEL, i, 3);
                  seen.add(i);
                });
            List<Integer> inOrder = new ArrayList<>(seen);
            inOrder.sort((a, b) -> buckets.bucketOf(a) - buckets.bucketOf(b)); // a stable sort
            assertEquals(inOrder, seen);
            Collections.sort(seen);
            assertEquals(IntStream.range(0, MODEL.size()).boxed().toList(), seen);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void exceptionInFinishCallbackBreaksBuckets(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            for (int i = 0; i < FLOATS.size(); i++) {
              buckets.ready(i);
            }
            int[] seen = {0};
            IllegalArgumentException mine = new IllegalArgumentException("mine");
            assertEquals(
                mine,
                assertThrows(
                    IllegalArgumentException.class,
                    () ->
                        buckets.finish(
                            i -> {
                              if (++seen[0] == FLOATS.size()) {
                                throw mine; // after the last average
                              }
                            })));
            assertEquals(
                mine, assertThrows(IllegalStateException.class, buckets::finish).getCause());
          }
        });
  }

  /** Averages of later buckets may still be running on some ranks. */
  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void anUpdateThatThrowsOnAllRanksLeavesTheSyncUsable(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          List<Parameter> model =
              IntStream.range(0, 4)
                  .mapToObj(i -> new Parameter("large " + i, DataType.FLOAT32, 400_000))
                  .toList();
          for (int attempt = 0; attempt < 3; attempt++) {
            try (GradientBuckets buckets =
                GradientBuckets.builder(sync, model)
                    .firstBucketBytes(1)
                    .bucketBytes(1)
                    .overlap(overlap)
                    .build()) {
              for (int i = model.size() - 1; i >= 0; i--) {
                buckets.ready(i);
              }
              assertThrows(
                  IllegalArgumentException.class,
                  () ->
                      buckets.finish(
                          i -> {
                            throw new IllegalArgumentException("a bad learning rate");
                          }));
            }
            sync.barrier();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void noSyncAccumulatesGradients(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, FLOATS).overlap(overlap).build()) {
            for (int round = 0; round < 2; round++) {
              float[][] sums = sums(sync.rank(), 3, round);
              for (int i = 0; i < FLOATS.size(); i++) {
                buckets.gradient(i).fillZero();
              }
              try (GradientBuckets.NoSync outer = buckets.noSync()) {
                add(sync, buckets, round, 0);
                try (GradientBuckets.NoSync inner = buckets.noSync()) {
                  add(sync, buckets, round, 1);
                }
                add(sync, buckets, round, 2);
                for (int i = 0; i < FLOATS.size(); i++) {
                  assertBits(bytes(sums[i]), buckets.gradient(i), "not averaged");
                }
              }
              add(sync, buckets, round, 3);
              for (int i = 0; i < FLOATS.size(); i++) {
                List<ByteBuffer> byRank = new ArrayList<>();
                for (int rank = 0; rank < ranks; rank++) {
                  byRank.add(bytes(sums(rank, 4, round)[i]));
                }
                assertBits(
                    Numbers.average(DataType.FLOAT32, byRank), buckets.gradient(i), "sum " + i);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void stepsOfARunnableAreNotAveraged(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            for (int i = 0; i < FLOATS.size(); i++) {
              buckets.gradient(i).fillZero();
            }
            buckets.noSync(() -> add(sync, buckets, 0, 0));
            float[][] sums = sums(sync.rank(), 1, 0);
            for (int i = 0; i < FLOATS.size(); i++) {
              assertBits(bytes(sums[i]), buckets.gradient(i), "not averaged");
            }
            IllegalStateException own = new IllegalStateException("of the program");
            assertSame(
                own,
                assertThrows(
                    IllegalStateException.class,
                    () ->
                        buckets.noSync(
                            () -> {
                              throw own;
                            })));
            assertThrows(NullPointerException.class, () -> buckets.noSync(null));
            step(sync, buckets, FLOATS, 1);
            assertAverages(sync, buckets, FLOATS, 1);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void aModelMayHaveNoParameters(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, List.of()).overlap(overlap).build();
              GradientBuckets sharded = small(sync, List.of()).overlap(overlap).sharded().build();
              GradientBuckets uneven =
                  small(sync, List.of()).overlap(overlap).unevenSteps().build()) {
            assertEquals(0, buckets.size());
            assertEquals(0, buckets.bucketCount());
            assertEquals(List.of(), sharded.shards());
            buckets.broadcast(List.of(), 0);
            for (int step = 0; step < 2; step++) {
              buckets.finish();
              assertEquals(0, buckets.clipByGlobalNorm(1));
              assertTrue(buckets.isFinite());
              buckets.rebuild();
              sharded.finish((gradient, weight, shard) -> {});
              assertEquals(0, sharded.clipByGlobalNorm(1));
            }
            for (int step = 0; step < sync.rank(); step++) {
              uneven.finish();
            }
            assertEquals(ranks - 1 - sync.rank(), uneven.join(() -> {}));
          }
        });
  }

  /** Returns the sums of the first backward passes of a round, added in order. */
  private static float[][] sums(int rank, int passes, int round) {
    float[][] sums = new float[FLOATS.size()][];
    for (int i = 0; i < sums.length; i++) {
      sums[i] = new float[(int) FLOATS.get(i).count()];
      for (int pass = 0; pass < passes; pass++) {
        float[] more = plain(rank, i, 100 * round + pass);
        for (int k = 0; k < more.length; k++) {
          sums[i][k] += more[k];
        }
      }
    }
    return sums;
  }

  /** Runs a backward pass that adds to the gradients. */
  private static void add(GradientSync sync, GradientBuckets buckets, int round, int pass) {
    for (int i : order(FLOATS.size(), sync.rank() + pass)) {
      float[] sum = new float[(int) FLOATS.get(i).count()];
      buckets.gradient(i).copyTo(sum);
      float[] more = plain(sync.rank(), i, 100 * round + pass);
      for (int k = 0; k < sum.length; k++) {
        sum[k] += more[k];
      }
      buckets.gradient(i).copyFrom(sum);
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** Returns numbers that differ by rank and index, without special values. */
  private static float[] plain(int rank, int parameter, int pass) {
    float[] values = new float[(int) FLOATS.get(parameter).count()];
    for (int k = 0; k < values.length; k++) {
      values[k] =
          (float) Math.sin(1 + rank + 31 * parameter + 7 * pass + k) / (1 + (k + rank) % 13);
    }
    return values;
  }

  private static ByteBuffer bytes(float[] values) {
    ByteBuffer memory = Numbers.memory(DataType.FLOAT32, values.length);
    memory.asFloatBuffer().put(values);
    return memory;
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void callsThatNeedAStepBoundaryThrowInFinishCallback(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              small(sync, MODEL).overlap(overlap).unevenSteps().build()) {
            readyAll(sync, buckets, MODEL, 4);
            buckets.finish(
                i -> {
                  outOfTurn(() -> buckets.ready(i), "ready already");
                  outOfTurn(buckets::noSync, "in the middle of a step");
                  outOfTurn(buckets::rebuild, "in the middle of a step");
                  outOfTurn(() -> buckets.join(() -> {}), "in the middle of a step");
                  assertAverage(sync, buckets, MODEL, i, 4);
                });
            step(sync, buckets, MODEL, 5);
            assertAverages(sync, buckets, MODEL, 5);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void missingGradientsCountAsZero(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              small(sync, MODEL).overlap(overlap).missing(Missing.ZERO).build()) {
            for (int step = 0; step < 5; step++) {
              for (int i : order(MODEL.size(), 50 * step + sync.rank())) {
                if (has(sync.rank(), i, step)) {
                  write(sync, buckets, MODEL, i, step);
                  buckets.ready(i);
                }
              }
              buckets.finish();
              for (int i = 0; i < MODEL.size(); i++) {
                List<ByteBuffer> byRank = new ArrayList<>();
                for (int rank = 0; rank < ranks; rank++) {
                  byRank.add(
                      has(rank, i, step)
                          ? numbers(MODEL, rank, i, step)
                          : Numbers.memory(MODEL.get(i).type(), (int) MODEL.get(i).count()));
                }
                assertBits(
                    Numbers.average(MODEL.get(i).type(), byRank),
                    buckets.gradient(i),
                    "step " + step + ", " + MODEL.get(i));
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void closedGradientViewIsReplaced(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              small(sync, FLOATS).overlap(overlap).missing(Missing.ZERO).build()) {
            for (int step = 0; step < 3; step++) {
              for (int i = 0; i < FLOATS.size() - 1; i++) {
                write(sync, buckets, FLOATS, i, step);
                buckets.gradient(i).close();
                buckets.ready(i);
              }
              DeviceBuffer last = buckets.gradient(FLOATS.size() - 1);
              last.close(); // not ready, so it is filled with zeros
              buckets.finish();
              for (int i = 0; i < FLOATS.size() - 1; i++) {
                assertAverage(sync, buckets, FLOATS, i, step);
              }
              assertTrue(last.isClosed());
              float[] zeros = new float[(int) last.count()];
              buckets.gradient(FLOATS.size() - 1).copyTo(zeros);
              assertArrayEquals(new float[zeros.length], zeros);
            }
          }
        });
  }

  /** Returns whether a rank uses a parameter in a step. In step 3 no rank uses any. */
  private static boolean has(int rank, int parameter, int step) {
    return step != 3 && parameter != 1 + step && (rank + parameter + step) % 3 != 0;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void gradientReadyInNoSyncIsNotMissing(int ranks) {
    run(
        ranks,
        sync -> {
          for (Missing missing : Missing.values()) {
            try (GradientBuckets buckets = small(sync, FLOATS).missing(missing).build()) {
              try (GradientBuckets.NoSync quiet = buckets.noSync()) {
                for (int i = 0; i < FLOATS.size(); i++) {
                  write(sync, buckets, FLOATS, i, 4);
                  buckets.ready(i);
                }
                buckets.finish();
              }
              buckets.ready(2); // the last pass adds nothing else
              buckets.finish();
              assertAverages(sync, buckets, FLOATS, 4);
              if (missing != Missing.REFUSE) { // the next step starts from scratch
                buckets.finish();
                for (int i = 0; i < FLOATS.size(); i++) {
                  assertBits(
                      Numbers.memory(DataType.FLOAT32, (int) FLOATS.get(i).count()),
                      buckets.gradient(i),
                      "nothing was ready");
                }
              } else {
                assertThrows(IllegalStateException.class, buckets::finish);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void discardForgetsWhatNoSyncHasAddedUp(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          for (Missing missing : Missing.values()) {
            for (boolean uneven : new boolean[] {false, true}) {
              GradientBuckets.Builder builder =
                  small(sync, FLOATS).overlap(overlap).missing(missing);
              try (GradientBuckets buckets = (uneven ? builder.unevenSteps() : builder).build()) {
                try (GradientBuckets.NoSync quiet = buckets.noSync()) {
                  for (int i = 0; i < FLOATS.size(); i++) {
                    write(sync, buckets, FLOATS, i, 4);
                    buckets.ready(i);
                  }
                  if (sync.rank() == 0) {
                    buckets.finish();
                  }
                  buckets.discard();
                  assertZeros(buckets);
                }
                if (missing == Missing.REFUSE) {
                  assertContains(
                      assertThrows(IllegalStateException.class, buckets::finish),
                      "no gradient is ready");
                  write(sync, buckets, FLOATS, 0, 5);
                  buckets.ready(0);
                }
                for (int i = 1; i < FLOATS.size(); i++) {
                  write(sync, buckets, FLOATS, i, 5);
                  buckets.ready(i);
                }
                buckets.finish();
                for (int i = 1; i < FLOATS.size(); i++) {
                  assertAverage(sync, buckets, FLOATS, i, 5);
                }
                if (missing == Missing.ZERO) {
                  assertZero(buckets.gradient(0));
                }
              }
            }
          }
        });
  }

  /** The ranks have come to different places of the step, so some have started more averages. */
  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void discardGivesAStepUp(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, FLOATS).overlap(overlap).build()) {
            for (int step = 0; step < 4; step++) {
              int ready = step == 0 ? FLOATS.size() : Math.floorMod(sync.rank() * 3 + step, 5);
              for (int i = FLOATS.size() - 1; i >= FLOATS.size() - ready; i--) {
                write(sync, buckets, FLOATS, i, 9 + step);
                buckets.ready(i);
              }
              buckets.discard();
              assertZeros(buckets);
              for (int i = FLOATS.size() - 1; i >= 0; i--) {
                write(sync, buckets, FLOATS, i, step);
                buckets.ready(i);
              }
              buckets.finish();
              assertAverages(sync, buckets, FLOATS, step);
            }
          }
          try (GradientBuckets uneven = small(sync, FLOATS).unevenSteps().build()) {
            assertContains(
                assertThrows(IllegalStateException.class, uneven::discard), "within noSync()");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void discardOnOneRankOnlyIsDetected(int ranks, boolean overlap) {
    if (ranks == 1) {
      return;
    }
    run(
        ranks,
        sync -> {
          boolean odd = sync.rank() == ranks - 1;
          try (GradientBuckets buckets = small(sync, FLOATS).overlap(overlap).build()) {
            for (int i = FLOATS.size() - 1; i >= 0; i--) {
              write(sync, buckets, FLOATS, i, 0);
              buckets.ready(i);
            }
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> {
                      if (odd) {
                        buckets.finish();
                        sync.barrier();
                      } else {
                        buckets.discard();
                      }
                    });
            if (overlap) { // otherwise the GPU of one rank waits for the hosts of the others
              assertContains(e, "rank 0: discard()");
            }
          }
        });
  }

  private static void assertZeros(GradientBuckets buckets) {
    for (int i = 0; i < buckets.size(); i++) {
      assertZero(buckets.gradient(i));
    }
  }

  private static void assertZero(DeviceBuffer gradient) {
    assertBits(Numbers.memory(gradient.type(), (int) gradient.count()), gradient, "zero");
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void finishNamesMissingGradients(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            step(sync, buckets, MODEL, 0);
            for (int i = 0; i < MODEL.size(); i++) {
              if (i != 2 && i != 8) {
                buckets.ready(i);
              }
            }
            IllegalStateException e =
                assertThrows(IllegalStateException.class, () -> buckets.finish());
            assertTrue(
                e.getMessage().contains("missing=[low BFLOAT16[2003], head FLOAT32[1500]]"),
                e.getMessage());
            assertTrue(e.getMessage().contains("rank=" + sync.rank()), e.getMessage());
            assertEquals(
                e, assertThrows(IllegalStateException.class, () -> buckets.ready(2)).getCause());
            assertThrows(IllegalStateException.class, buckets::finish);
            assertThrows(IllegalStateException.class, buckets::noSync);
            assertThrows(IllegalStateException.class, buckets::rebuild);
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void rankThatFinishesWithMissingGradientsIsLost(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            step(sync, buckets, MODEL, 0);
            if (sync.rank() == ranks - 1) {
              buckets.ready(8);
              assertThrows(IllegalStateException.class, buckets::finish);
              buckets.close();
              sync.close();
            } else {
              assertThrows(RankLostException.class, () -> wholeStep(sync, buckets, MODEL, 1));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void broadcastsParameters(int ranks) {
    run(
        ranks,
        sync -> {
          List<DeviceBuffer> weights = new ArrayList<>();
          for (Parameter parameter : MODEL) {
            weights.add(sync.allocate(parameter.type(), parameter.count()));
          }
          try (GradientBuckets buckets = small(sync, MODEL).build()) {
            for (int root = ranks - 1; root >= 0; root -= 2) {
              for (int i = 0; i < MODEL.size(); i++) {
                weights.get(i).copyFrom(numbers(MODEL, sync.rank(), i, root));
              }
              buckets.broadcast(weights, root);
              for (int i = 0; i < MODEL.size(); i++) {
                assertBits(numbers(MODEL, root, i, root), weights.get(i), "root " + root);
              }
            }
            refused(() -> buckets.broadcast(weights, ranks), "no such rank: root=" + ranks);
            refused(() -> buckets.broadcast(weights, -1), "no such rank");
            refused(
                () -> buckets.broadcast(weights.subList(0, 8), 0),
                "index=8, is=none, expected=head FLOAT32[1500]");
            List<DeviceBuffer> others = new ArrayList<>(weights);
            others.set(2, weights.get(5));
            refused(() -> buckets.broadcast(others, 0), "index=2", "low BFLOAT16[2003]");
            others.set(2, weights.get(2).slice(0, 2_002));
            refused(() -> buckets.broadcast(others, 0), "index=2", "BFLOAT16[2002]");
            others.set(2, weights.get(2));
            others.add(weights.get(0));
            refused(() -> buckets.broadcast(others, 0), "index=9", "expected=none");
            step(sync, buckets, MODEL, 5);
            assertAverages(sync, buckets, MODEL, 5);
          }
          weights.forEach(DeviceBuffer::close);
        });
  }

  private static void outOfTurn(Runnable call, String... parts) {
    assertContains(assertThrows(IllegalStateException.class, call::run), parts);
  }

  private static void refused(Runnable call, String... parts) {
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, call::run);
    assertContains(e, parts);
  }

  private static void assertContains(Throwable e, String... parts) {
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("several")
  void differentModelsThrowOnAllRanks(int ranks) {
    run(
        ranks,
        sync -> {
          int last = ranks - 1;
          boolean odd = sync.rank() == last;
          Parameter other = new Parameter("low", DataType.BFLOAT16, 2_004);
          List<Parameter> count = new ArrayList<>(MODEL);
          count.set(2, other);
          count.set(7, other); // the message names the first difference
          differ(
              sync,
              odd ? count : MODEL,
              "first=2 (low)",
              "rank 0: low BFLOAT16[2003]",
              "rank " + last + ": low BFLOAT16[2004]",
              "rank=" + sync.rank());
          List<Parameter> type = new ArrayList<>(MODEL);
          type.set(0, new Parameter("embedding", DataType.BFLOAT16, 9_001));
          differ(
              sync,
              odd ? MODEL : type,
              "first=0 (embedding)",
              "rank 0: embedding BFLOAT16[9001]",
              "rank " + last + ": embedding FLOAT32[9001]");
          differ(
              sync,
              odd ? MODEL.subList(0, 8) : MODEL,
              odd ? "first=8, " : "first=8 (head), ",
              "rank 0: head FLOAT32[1500]",
              "rank " + last + ": no such parameter");
          differ(
              sync,
              odd ? MODEL : MODEL.subList(0, 1),
              "first=1",
              "rank 0: no such parameter",
              "rank " + last + ": norm FLOAT32[1]");
          // both differences at once
          differ(sync, odd ? count.subList(0, 5) : MODEL, "first=2 (low)");
          List<Parameter> name = new ArrayList<>(FLOATS);
          // the message stays on one line
          name.set(4, new Parameter("x\n\u2028rank 9", DataType.FLOAT32, 500));
          differ(
              sync,
              odd ? name : FLOATS,
              odd ? "first=4 (x  rank 9)" : "first=4 (e)",
              "rank 0: e FLOAT32[500]",
              "rank " + last + ": x  rank 9 FLOAT32[500]");
          try (GradientBuckets buckets = small(sync, MODEL).build()) { // the sync still works
            step(sync, buckets, MODEL, 0);
            assertAverages(sync, buckets, MODEL, 0);
          }
        });
  }

  private static void differ(GradientSync sync, List<Parameter> model, String... parts) {
    assertContains(
        assertThrows(MismatchedCallException.class, () -> small(sync, model).build()), parts);
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("several")
  void differentOptionsThrowOnAllRanks(int ranks) {
    run(
        ranks,
        sync -> {
          boolean odd = sync.rank() == ranks - 1;
          GradientBuckets.Builder size = small(sync, MODEL).bucketBytes(odd ? 16_001 : 16_000);
          assertContains(
              assertThrows(MismatchedCallException.class, size::build),
              "bucketBytes=" + (odd ? 16_001 : 16_000) + ", rank=" + sync.rank(),
              odd ? "there=16000, other=0" : "there=16001, other=" + (ranks - 1));
          GradientBuckets.Builder first = small(sync, MODEL).firstBucketBytes(odd ? 7 : 8);
          assertContains(
              assertThrows(MismatchedCallException.class, first::build), "firstBucketBytes=");
          GradientBuckets.Builder overlap = small(sync, MODEL).overlap(odd);
          assertContains(assertThrows(MismatchedCallException.class, overlap::build), "overlap=");
          GradientBuckets.Builder uneven = small(sync, MODEL);
          assertContains(
              assertThrows(
                  MismatchedCallException.class,
                  () -> (odd ? uneven.unevenSteps() : uneven).build()),
              "unevenSteps=");
          GradientBuckets.Builder stop =
              small(sync, MODEL).unevenSteps(odd ? Uneven.STOP : Uneven.JOIN);
          assertContains(
              assertThrows(MismatchedCallException.class, stop::build), "unevenSteps(STOP)=");
          GradientBuckets.Builder skip =
              small(sync, MODEL).missing(odd ? Missing.SKIP : Missing.ZERO);
          assertContains(
              assertThrows(MismatchedCallException.class, skip::build), "missing(SKIP)=");
          GradientBuckets.Builder divisor =
              small(sync, MODEL).divisor(odd ? Divisor.ALL_RANKS : Divisor.CONTRIBUTING_RANKS);
          assertContains(
              assertThrows(MismatchedCallException.class, divisor::build),
              "divisor(CONTRIBUTING_RANKS)=");
          sync.barrier();
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void joinStandsInForRanksWithFewerSteps(int ranks, DataType type) {
    List<Parameter> model =
        List.of(
            new Parameter("x", DataType.FLOAT32, 500),
            new Parameter("y", type, 1_200),
            new Parameter("z", type, 3));
    run(
        ranks,
        sync -> {
          for (boolean overlap : new boolean[] {true, false}) {
            try (GradientBuckets buckets =
                small(sync, model).firstBucketBytes(1).unevenSteps().overlap(overlap).build()) {
              for (int epoch = 0; epoch < 4; epoch++) {
                joinOthers(sync, buckets, model, epoch);
              }
            }
          }
        });
  }

  /**
   * Returns a rank's number of steps: in epoch 0 none on rank 0, in epoch 1 none on the last rank,
   * then the same on all.
   */
  private static int steps(int epoch, int rank, int ranks) {
    return switch (epoch) {
      case 0 -> rank;
      case 1 -> 2 * (ranks - 1 - rank);
      case 2 -> 2;
      default -> 0;
    };
  }

  private static void joinOthers(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int epoch) {
    int ranks = sync.size();
    int own = steps(epoch, sync.rank(), ranks);
    int most = IntStream.range(0, ranks).map(rank -> steps(epoch, rank, ranks)).max().getAsInt();
    for (int step = 0; step < own; step++) {
      step(sync, buckets, model, 10 * epoch + step);
      assertPartialAverages(sync, buckets, model, epoch, step);
    }
    int[] next = {own};
    long joined = buckets.join(() -> assertPartialAverages(sync, buckets, model, epoch, next[0]++));
    assertEquals(most - own, joined);
    assertEquals(most, next[0]);
  }

  private static void assertPartialAverages(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int epoch, int step) {
    for (int i = 0; i < model.size(); i++) {
      List<ByteBuffer> byRank = new ArrayList<>();
      for (int rank = 0; rank < sync.size(); rank++) {
        byRank.add(
            step < steps(epoch, rank, sync.size())
                ? numbers(model, rank, i, 10 * epoch + step)
                : Numbers.memory(model.get(i).type(), (int) model.get(i).count()));
      }
      assertBits(
          Numbers.average(model.get(i).type(), byRank),
          buckets.gradient(i),
          "epoch " + epoch + ", step " + step + ", " + model.get(i));
    }
  }

  /** A gradient of whole numbers, whose sums are exact. */
  private static void writeWhole(GradientSync sync, GradientBuckets buckets, int i, int step) {
    float[] gradient = new float[(int) FLOATS.get(i).count()];
    Arrays.fill(gradient, 16 * sync.rank() + 3 * i + step + 1);
    buckets.gradient(i).copyFrom(gradient);
  }

  /** What is expected of the ranks that have a gradient, divided by all ranks or by those. */
  private static float averageOfWhole(
      int ranks, IntPredicate has, int i, int step, Divisor divisor) {
    float sum = 0;
    int contributing = 0;
    for (int rank = 0; rank < ranks; rank++) {
      if (has.test(rank)) {
        sum += 16 * rank + 3 * i + step + 1;
        contributing++;
      }
    }
    float average = sum / ranks;
    return divisor == Divisor.ALL_RANKS || contributing == 0
        ? average
        : (float) (average * ((double) ranks / contributing));
  }

  private static void assertAll(float expected, DeviceBuffer buffer, String what) {
    float[] actual = new float[(int) buffer.count()];
    buffer.copyTo(actual);
    for (float value : actual) {
      assertEquals(expected, value, what);
    }
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void whatNoRankHasReadyIsSkipped(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          for (Divisor divisor : Divisor.values()) {
            try (GradientBuckets buckets =
                small(sync, FLOATS)
                    .overlap(overlap)
                    .missing(Missing.SKIP)
                    .divisor(divisor)
                    .build()) {
              for (int i = 0; i < FLOATS.size(); i++) {
                assertFalse(buckets.isSkipped(i), "no step has been finished");
              }
              for (int step = 0; step < 6; step++) {
                int now = step;
                for (int i : order(FLOATS.size(), 50 * step + sync.rank())) {
                  if (step == 5 || has(sync.rank(), i, step)) {
                    writeWhole(sync, buckets, i, step);
                    buckets.ready(i);
                  }
                }
                Set<Integer> updated = new TreeSet<>();
                if (step % 2 == 0) {
                  buckets.finish();
                } else {
                  buckets.finish(i -> updated.add(i));
                }
                for (int i = 0; i < FLOATS.size(); i++) {
                  int parameter = i;
                  IntPredicate has = rank -> now == 5 || has(rank, parameter, now);
                  boolean skipped = IntStream.range(0, ranks).noneMatch(has);
                  String what = divisor + ", step " + step + ", " + FLOATS.get(i);
                  assertEquals(skipped, buckets.isSkipped(i), what);
                  assertEquals(step % 2 == 1 && !skipped, updated.contains(i), what);
                  float expected = averageOfWhole(ranks, has, i, step, divisor);
                  assertAll(expected, buckets.gradient(i), what);
                }
                assertFalse(buckets.stopRequested());
              }
              buckets.discard();
              assertFalse(buckets.isSkipped(1));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void whatWasReadyInNoSyncIsNotSkipped(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, FLOATS).missing(Missing.SKIP).build()) {
            try (GradientBuckets.NoSync quiet = buckets.noSync()) {
              if (sync.rank() == ranks - 1) {
                writeWhole(sync, buckets, 2, 0);
                buckets.ready(2);
              }
              buckets.finish();
            }
            buckets.finish();
            for (int i = 0; i < FLOATS.size(); i++) {
              assertEquals(i != 2, buckets.isSkipped(i), "parameter " + i);
            }
            assertAll((16f * (ranks - 1) + 7) / ranks, buckets.gradient(2), "average");
            buckets.ready(0);
            assertThrows(IllegalStateException.class, () -> buckets.isSkipped(0));
            assertThrows(IllegalStateException.class, buckets::stopRequested);
            buckets.finish();
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.isSkipped(FLOATS.size()));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void joinMayLeaveOutRanksWithoutData(int ranks) {
    run(
        ranks,
        sync -> {
          for (Missing missing : new Missing[] {Missing.REFUSE, Missing.SKIP}) {
            for (Divisor divisor : Divisor.values()) {
              try (GradientBuckets buckets =
                  small(sync, FLOATS)
                      .unevenSteps(Uneven.JOIN)
                      .missing(missing)
                      .divisor(divisor)
                      .build()) {
                int[] step = {0};
                Runnable check =
                    () -> {
                      for (int i = 0; i < FLOATS.size(); i++) {
                        float expected =
                            averageOfWhole(ranks, rank -> rank >= step[0], i, step[0], divisor);
                        String what = missing + ", " + divisor + ", step " + step[0];
                        assertAll(expected, buckets.gradient(i), what);
                        assertFalse(buckets.isSkipped(i), what);
                      }
                      step[0]++;
                    };
                while (step[0] <= sync.rank()) { // rank r has r + 1 steps
                  for (int i = 0; i < FLOATS.size(); i++) {
                    writeWhole(sync, buckets, i, step[0]);
                    buckets.ready(i);
                  }
                  buckets.finish();
                  check.run();
                }
                try (GradientBuckets.NoSync quiet = buckets.noSync()) {
                  buckets.ready(0); // of a step that never ends
                }
                assertEquals(ranks - 1 - sync.rank(), buckets.join(check));
                assertFalse(buckets.stopRequested());
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void allRanksStopWhenTheFirstHasNoMoreData(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          for (int most : new int[] {3, 1}) {
            try (GradientBuckets buckets =
                small(sync, FLOATS).unevenSteps(Uneven.STOP).overlap(overlap).build()) {
              int own = sync.rank() == ranks / 2 ? most : most + sync.rank() + 1;
              int[] steps = {0};
              while (steps[0] < own && !buckets.stopRequested()) {
                step(sync, buckets, FLOATS, steps[0]++);
              }
              long joined = buckets.join(() -> steps[0]++);
              // Alone, the only rank has taken all of its own.
              assertEquals(ranks == 1 ? most : most + 1, steps[0]);
              assertEquals(ranks > 1 && sync.rank() == ranks / 2 ? 1 : 0, joined);
              assertTrue(buckets.stopRequested());
            }
          }
          try (GradientBuckets buckets = small(sync, FLOATS).unevenSteps(Uneven.STOP).build()) {
            step(sync, buckets, FLOATS, 0);
            assertFalse(buckets.stopRequested());
            assertEquals(0, buckets.join(() -> {})); // all at once
            assertTrue(buckets.stopRequested());
            assertEquals(0, buckets.join(() -> {}));
          }
          try (GradientBuckets buckets = small(sync, FLOATS).unevenSteps(Uneven.JOIN).build()) {
            int own = sync.rank() == 0 ? 1 : 5;
            for (int i = 0; i < own && !buckets.stopRequested(); i++) {
              step(sync, buckets, FLOATS, i);
              if (sync.rank() == ranks - 1) {
                sync.requestStop();
              }
            }
            assertEquals(sync.rank() == 0 && ranks > 1 ? 1 : 0, buckets.join(() -> {}));
            assertTrue(buckets.stopRequested());
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void allRanksStopAfterTheSameStep(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          for (int[] asked : new int[][] {{0}, {ranks - 1}, {0, ranks - 1}}) {
            try (GradientSync part = sync.split(0, sync.rank());
                GradientBuckets buckets = small(part, MODEL).overlap(overlap).build();
                GradientBuckets none = small(part, List.of()).build()) {
              assertFalse(buckets.stopRequested());
              for (int step = 0; step < 5; step++) {
                for (int i = MODEL.size() - 1; i >= 0; i--) {
                  write(part, buckets, MODEL, i, step);
                  if (i == 1 && step == 2 && IntStream.of(asked).anyMatch(r -> r == part.rank())) {
                    part.requestStop(); // in the middle of a step
                    part.requestStop();
                  }
                  buckets.ready(i);
                }
                buckets.finish();
                assertEquals(step >= 2, buckets.stopRequested(), "step " + step);
                assertAverages(part, buckets, MODEL, step);
                try (GradientBuckets.NoSync quiet = buckets.noSync()) {
                  assertEquals(step >= 2, buckets.stopRequested(), "step " + step);
                }
                none.finish();
                assertEquals(step >= 2, none.stopRequested(), "step " + step);
              }
            }
          }
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            step(sync, buckets, FLOATS, 0);
            assertFalse(buckets.stopRequested(), "only parts were asked");
            if (sync.rank() == 0) {
              sync.requestStop();
            }
            step(sync, buckets, FLOATS, 1);
            assertTrue(buckets.stopRequested());
          }
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            for (int i = 0; i < FLOATS.size(); i++) {
              buckets.ready(i);
            }
            buckets.finish();
            assertTrue(buckets.rebuild());
            assertTrue(buckets.stopRequested(), "nobody had looked before the rebuild");
          }
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            step(sync, buckets, FLOATS, 0);
            if (sync.rank() == 0) {
              buckets.noSync(buckets::discard);
            }
            assertTrue(buckets.stopRequested(), "nobody had looked before rank 0 discarded");
          }
          try (GradientBuckets buckets = small(sync, FLOATS).build()) {
            step(sync, buckets, FLOATS, 0);
            for (int i = 0; sync.rank() == 0 && i < FLOATS.size(); i++) {
              buckets.ready(i); // the flags of the next step are on their way
            }
            buckets.discard();
            assertTrue(buckets.stopRequested(), "nobody had looked before all discarded");
          }
          try (GradientSync part = sync.split(0, sync.rank());
              GradientBuckets buckets = small(part, FLOATS).build()) {
            step(part, buckets, FLOATS, 0);
            assertTrue(buckets.stopRequested(), "the sync that it is a part of was asked");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void joinThrowsWhereItIsNotAllowed(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets even = small(sync, FLOATS).build();
              GradientBuckets uneven = small(sync, FLOATS).unevenSteps().build()) {
            assertContains(
                assertThrows(IllegalStateException.class, () -> even.join(() -> {})),
                "unevenSteps()");
            uneven.ready(0);
            assertContains(
                assertThrows(IllegalStateException.class, () -> uneven.join(() -> {})),
                "in the middle of a step");
            for (int i = 1; i < FLOATS.size(); i++) {
              uneven.ready(i);
            }
            uneven.finish();
            try (GradientBuckets.NoSync quiet = uneven.noSync()) {
              assertContains(
                  assertThrows(IllegalStateException.class, () -> uneven.join(() -> {})),
                  "within noSync()");
            }
            assertEquals(0, uneven.join(() -> {}));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void rebuildOrdersBucketsByReadiness(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              small(sync, MODEL)
                  .firstBucketBytes(1)
                  .bucketBytes(1)
                  .overlap(overlap)
                  .unevenSteps()
                  .build()) {
            assertThrows(IllegalStateException.class, buckets::rebuild); // no step has run yet
            assertEquals(0, buckets.bucketOf(8));
            // Forward order on rank 0, any order elsewhere. Only the first step counts.
            List<Integer> forwards = IntStream.range(0, MODEL.size()).boxed().toList();
            for (int i : sync.rank() == 0 ? forwards : order(MODEL.size(), sync.rank())) {
              write(sync, buckets, MODEL, i, 0);
              buckets.ready(i);
            }
            buckets.finish();
            step(sync, buckets, MODEL, 1);
            assertAverages(sync, buckets, MODEL, 1);

            write(sync, buckets, MODEL, 0, 2);
            buckets.ready(0);
            assertThrows(IllegalStateException.class, buckets::rebuild);
            for (int i = 1; i < MODEL.size(); i++) {
              write(sync, buckets, MODEL, i, 2);
              buckets.ready(i);
            }
            buckets.finish();
            try (GradientBuckets.NoSync quiet = buckets.noSync()) {
              assertThrows(IllegalStateException.class, buckets::rebuild);
            }

            DeviceBuffer before = buckets.gradient(3);
            assertTrue(buckets.rebuild());
            assertTrue(before.isClosed());
            assertFalse(buckets.gradient(3).isClosed());
            assertEquals(0, buckets.bucketOf(0));
            for (int i = 1; i < MODEL.size(); i++) {
              assertTrue(buckets.bucketOf(i) >= buckets.bucketOf(i - 1));
            }
            step(sync, buckets, MODEL, 3);
            assertAverages(sync, buckets, MODEL, 3);
            DeviceBuffer now = buckets.gradient(3);
            assertFalse(buckets.rebuild());
            assertFalse(now.isClosed());
            step(sync, buckets, MODEL, 4);
            assertAverages(sync, buckets, MODEL, 4);
            assertEquals(0, buckets.join(() -> {})); // the flags moved with the last bucket
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void severalBucketSetsShareOneSync(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets a = small(sync, MODEL).build();
              GradientBuckets b = small(sync, FLOATS).build();
              GradientBuckets c = small(sync, FLOATS).overlap(false).build()) {
            for (int step = 0; step < 5; step++) {
              step(sync, a, MODEL, step);
              step(sync, b, FLOATS, step + 100);
              step(sync, c, FLOATS, step + 200);
              assertAverages(sync, a, MODEL, step);
              assertAverages(sync, b, FLOATS, step + 100);
              assertAverages(sync, c, FLOATS, step + 200);
              // one step inside the other
              readyAll(sync, a, MODEL, step + 300);
              readyAll(sync, b, FLOATS, step + 400);
              a.finish();
              b.finish();
              assertAverages(sync, b, FLOATS, step + 400);
              assertAverages(sync, a, MODEL, step + 300);
            }
            // built and rebuilt during a step of another one
            readyAll(sync, a, MODEL, 7);
            b.rebuild();
            try (GradientBuckets d = small(sync, FLOATS).build()) {
              step(sync, d, FLOATS, 8);
              a.finish();
              assertAverages(sync, a, MODEL, 7);
              assertAverages(sync, d, FLOATS, 8);
            }
            step(sync, b, FLOATS, 9);
            assertAverages(sync, b, FLOATS, 9);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void syncCallsWorkBetweenReadyAndFinish(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          DataType type = DataType.FLOAT32;
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build();
              DeviceBuffer own = sync.allocate(type, 3_001)) {
            for (int step = 0; step < 4; step++) {
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                write(sync, buckets, MODEL, i, step);
                buckets.ready(i);
                own.copyFrom(Numbers.of(type, sync.rank(), i, 3_001));
                if (i % 3 == 0) {
                  sync.average(own);
                  assertBits(
                      Numbers.reduced(type, ReduceOp.AVERAGE, ranks, i, 3_001), own, "own " + i);
                } else if (i % 3 == 1) {
                  sync.broadcast(own, i % ranks);
                  assertBits(Numbers.of(type, i % ranks, i, 3_001), own, "own " + i);
                } else {
                  sync.barrier();
                }
              }
              buckets.finish();
              assertAverages(sync, buckets, MODEL, step);
            }
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
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            for (int step = 0; step < 50; step++) {
              emptyStep(buckets);
            }
            long[] threads = threads(sync);
            allocated(bean, threads); // loads classes
            long least = Long.MAX_VALUE;
            // the JIT may still be compiling on a busy machine
            for (int round = 0; round < 10 && sync.communicator().any(least >= 2_000); round++) {
              long before = allocated(bean, threads);
              for (int step = 0; step < 200; step++) {
                emptyStep(buckets);
              }
              least = Math.min(least, allocated(bean, threads) - before);
            }
            // Reading the counter allocates a little. One object per step would be at least 3200
            // bytes.
            assertTrue(
                least < 2_000,
                "bytes in 200 steps: " + least + ", of threads: " + Arrays.toString(threads));
            sync.barrier();
          }
        });
  }

  private static long allocated(ThreadMXBean bean, long[] threads) {
    long sum = 0;
    for (long bytes : bean.getThreadAllocatedBytes(threads)) {
      sum += bytes;
    }
    return sum;
  }

  private static void emptyStep(GradientBuckets buckets) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** Returns this thread and the communication thread of this rank. */
  private static long[] threads(GradientSync sync) {
    List<Long> ids = new ArrayList<>();
    ids.add(Thread.currentThread().getId());
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().equals("gradient-sync-" + sync.rank())) {
        ids.add(thread.getId());
      }
    }
    return ids.stream().mapToLong(Long::longValue).toArray();
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void readyTwiceThrowsAndChangesNothing(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            for (int i = 0; i < MODEL.size(); i++) {
              int parameter = i;
              write(sync, buckets, MODEL, i, 1);
              buckets.ready(i);
              assertContains(
                  assertThrows(IllegalStateException.class, () -> buckets.ready(parameter)),
                  "parameter=" + MODEL.get(i),
                  "rank=" + sync.rank());
              assertThrows(IllegalStateException.class, buckets::noSync);
            }
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.ready(-1));
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.ready(MODEL.size()));
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.gradient(MODEL.size()));
            assertThrows(IndexOutOfBoundsException.class, () -> buckets.bucketOf(-1));
            buckets.finish();
            assertAverages(sync, buckets, MODEL, 1);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void callsAfterCloseThrow(int ranks) {
    run(
        ranks,
        sync -> {
          GradientBuckets buckets = small(sync, MODEL).unevenSteps().build();
          step(sync, buckets, MODEL, 0);
          DeviceBuffer view = buckets.gradient(0);
          buckets.close();
          buckets.close();
          assertTrue(view.isClosed());
          assertThrows(IllegalStateException.class, view::fillZero);
          assertThrows(IllegalStateException.class, () -> sync.average(view));
          assertTrue(buckets.gradient(0).isClosed());
          for (Runnable call :
              List.<Runnable>of(
                  () -> buckets.ready(0),
                  buckets::finish,
                  buckets::noSync,
                  buckets::rebuild,
                  () -> buckets.join(() -> {}),
                  () -> buckets.broadcast(List.of(), 0))) {
            assertContains(
                assertThrows(IllegalStateException.class, call::run), "closed", "" + sync.rank());
          }
          try (GradientBuckets next = small(sync, FLOATS).build()) {
            step(sync, next, FLOATS, 2);
            assertAverages(sync, next, FLOATS, 2);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void bucketsThrowAfterSyncIsClosed(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build();
          step(sync, buckets, MODEL, 0);
          assertAverages(sync, buckets, MODEL, 0);
          sync.barrier();
          sync.close();
          assertThrows(IllegalStateException.class, () -> emptyStep(buckets));
          assertThrows(IllegalStateException.class, () -> emptyStep(buckets));
          assertThrows(IllegalStateException.class, () -> small(sync, MODEL).build());
          buckets.close();
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void closingSyncMidStepThrowsOnAllRanks(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            step(sync, buckets, MODEL, 0);
            if (sync.rank() == 0) {
              buckets.ready(8);
              buckets.ready(7);
              sync.close();
              assertThrows(
                  // the failure of the abandoned average, or an IllegalStateException
                  RuntimeException.class,
                  () -> {
                    for (int i = 0; i < 7; i++) {
                      buckets.ready(i);
                    }
                    buckets.finish();
                  });
            } else {
              assertThrows(RankLostException.class, () -> wholeStep(sync, buckets, MODEL, 1));
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void closingBucketsMidStepThrowsOnOtherRanks(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            step(sync, buckets, MODEL, 0);
            if (sync.rank() == 0) {
              for (int i = 3; i < MODEL.size(); i++) {
                buckets.ready(i);
              }
              buckets.close();
              sync.close();
            } else {
              RankLostException e =
                  assertThrows(RankLostException.class, () -> wholeStep(sync, buckets, MODEL, 1));
              assertContains(e, "rank=" + sync.rank());
              assertThrows(RuntimeException.class, () -> wholeStep(sync, buckets, MODEL, 2));
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void exceptionMidStepThrowsOnOtherRanks(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          if (sync.rank() == ranks - 1) {
            ArithmeticException mine = new ArithmeticException("mine");
            assertEquals(
                mine,
                assertThrows(
                    ArithmeticException.class,
                    () -> {
                      try (sync;
                          GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
                        step(sync, buckets, MODEL, 0);
                        buckets.ready(8);
                        throw mine;
                      }
                    }));
            return;
          }
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            step(sync, buckets, MODEL, 0);
            assertThrows(RankLostException.class, () -> wholeStep(sync, buckets, MODEL, 1));
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("several")
  void differentStepCountsThrowOnAllRanks(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).build()) {
            wholeStep(sync, buckets, MODEL, 0);
            if (sync.rank() == 0) {
              assertThrows(GradientSyncException.class, sync::barrier);
            } else {
              assertThrows(GradientSyncException.class, () -> wholeStep(sync, buckets, MODEL, 1));
              assertThrows(RuntimeException.class, () -> wholeStep(sync, buckets, MODEL, 2));
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void mismatchedAverageThrowsOnAllRanks(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build();
              DeviceBuffer own = sync.allocate(DataType.FLOAT32, 17)) {
            sync.average(own);
            wholeStep(sync, buckets, MODEL, 0);
            MismatchedCallException e;
            if (sync.rank() == ranks - 1) {
              e =
                  assertThrows(
                      MismatchedCallException.class,
                      () -> {
                        sync.average(own);
                        own.copyTo(new float[17]);
                      });
            } else {
              e =
                  assertThrows(
                      MismatchedCallException.class, () -> wholeStep(sync, buckets, MODEL, 1));
              assertThrows(RuntimeException.class, () -> wholeStep(sync, buckets, MODEL, 2));
            }
            assertContains(e, "rank " + (ranks - 1) + ": allReduce(FLOAT32[17], AVERAGE)");
          }
        });
  }

  /** The models have the same types and counts, so only the names differ. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void bucketSetsInDifferentOrderThrowMismatch(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets a = small(sync, FLOATS).overlap(overlap).build();
              GradientBuckets b = small(sync, FLOATS).overlap(overlap).build()) {
            step(sync, a, FLOATS, 0);
            step(sync, b, FLOATS, 1);
            assertAverages(sync, a, FLOATS, 0);
            assertAverages(sync, b, FLOATS, 1);
            boolean odd = sync.rank() == ranks - 1;
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class, () -> wholeStep(sync, odd ? b : a, FLOATS, 2));
            assertContains(
                e,
                "rank 0: allReduce(FLOAT32[",
                "\"bucket 0: e to",
                "rank " + (ranks - 1) + ": allReduce(FLOAT32[",
                "\"buckets 2, bucket 0: e to");
          }
        });
  }

  /**
   * After the mismatch, the communication threads of the ranks skip the rest of different bucket
   * sets.
   */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("several")
  void interleavedBucketSetsInDifferentOrderThrowMismatch(int ranks) {
    run(
        ranks,
        sync -> {
          if (sync.reducer().equals("peer")) {
            return; // with peer, a mismatch breaks the sync
          }
          try (GradientBuckets a = small(sync, FLOATS).build();
              GradientBuckets b = small(sync, FLOATS).build();
              GradientBuckets c = small(sync, FLOATS).build()) {
            boolean odd = sync.rank() == ranks - 1;
            readyAll(sync, odd ? b : a, FLOATS, 0);
            readyAll(sync, odd ? a : b, FLOATS, 0);
            assertThrows(MismatchedCallException.class, a::finish);
            assertThrows(MismatchedCallException.class, b::finish);
            sync.barrier();
            step(sync, c, FLOATS, 1);
            assertAverages(sync, c, FLOATS, 1);
          }
        });
  }

  /** Without overlap the caller averages, in the same order as the other averages of the sync. */
  @ParameterizedTest
  @MethodSource("sizes")
  void bucketsWithoutOverlapWorkWhileOthersAverage(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets beside = small(sync, MODEL).build();
              GradientBuckets within = small(sync, MODEL).overlap(false).build()) {
            for (int step = 0; step < 20; step++) {
              readyAll(sync, beside, MODEL, step);
              step(sync, within, MODEL, step + 100);
              assertAverages(sync, within, MODEL, step + 100);
              beside.finish();
              assertAverages(sync, beside, MODEL, step);
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalAndOverlap")
  void nonFiniteGradientIsNamedAndSparesOtherBuckets(int ranks, boolean overlap) {
    runner()
        .run(
            ranks,
            b -> b.timeout(timeout()).requireFinite(true),
            sync -> {
              int odd = ranks - 1;
              try (GradientBuckets others = small(sync, FLOATS).overlap(overlap).build()) {
                try (GradientBuckets buckets = small(sync, FLOATS).overlap(overlap).build()) {
                  assertAveragesOfFinite(sync, buckets);
                  NotFiniteException e =
                      assertThrows(
                          NotFiniteException.class,
                          () -> {
                            writeFinite(sync, buckets, sync.rank() == odd ? 1_234 : -1);
                            buckets.finish();
                            buckets.gradient(0).copyTo(new float[700]);
                          });
                  assertContains(e, "rank " + odd + ": ", "(c[1234])", "rank=" + sync.rank());
                }
                sync.barrier();
                assertAveragesOfFinite(sync, others);
                try (GradientBuckets again = small(sync, FLOATS).overlap(overlap).build()) {
                  assertAveragesOfFinite(sync, again);
                }
              }
            });
  }

  /** Sets every gradient to the rank's number, with a NaN in the third one if an index is given. */
  private static void writeFinite(GradientSync sync, GradientBuckets buckets, int notFinite) {
    for (int i = FLOATS.size() - 1; i >= 0; i--) {
      float[] values = new float[(int) FLOATS.get(i).count()];
      Arrays.fill(values, sync.rank());
      if (i == 2 && notFinite >= 0) {
        values[notFinite] = Float.NaN;
      }
      buckets.gradient(i).copyFrom(values);
    }
    // Do not wait for the device here: it may have found the NaN, and then the ranks would end
    // their steps at different calls.
    for (int i = FLOATS.size() - 1; i >= 0; i--) {
      buckets.ready(i);
    }
  }

  private static void assertAveragesOfFinite(GradientSync sync, GradientBuckets buckets) {
    writeFinite(sync, buckets, -1);
    buckets.finish();
    float sum = IntStream.range(0, sync.size()).sum();
    for (int i = 0; i < FLOATS.size(); i++) {
      float[] expected = new float[(int) FLOATS.get(i).count()];
      Arrays.fill(expected, sum / sync.size());
      float[] averages = new float[expected.length];
      buckets.gradient(i).copyTo(averages);
      assertArrayEquals(expected, averages);
    }
  }

  @ParameterizedTest
  @MethodSource("sizesAndOverlap")
  void communicatorCallsWorkBetweenReadyAndFinish(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          Communicator communicator = sync.communicator();
          try (GradientBuckets buckets = small(sync, MODEL).overlap(overlap).build()) {
            for (int step = 0; step < 4; step++) {
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                write(sync, buckets, MODEL, i, step);
                buckets.ready(i);
                exchange(communicator, (i + step) % 7);
              }
              buckets.finish();
              assertAverages(sync, buckets, MODEL, step);
            }
          }
        });
  }

  /** Makes a call of one kind and checks its result. */
  private static void exchange(Communicator communicator, int kind) {
    int ranks = communicator.size();
    int rank = communicator.rank();
    int[] own = {rank + 1};
    int[] numbers = IntStream.rangeClosed(1, ranks).toArray();
    int[] all = new int[ranks];
    switch (kind) {
      case 0 -> communicator.allGather(IntBuffer.wrap(own), IntBuffer.wrap(all));
      case 1 -> {
        communicator.gather(IntBuffer.wrap(own), IntBuffer.wrap(all), 0);
        communicator.broadcast(IntBuffer.wrap(all), 0);
      }
      case 2 -> {
        communicator.scatter(IntBuffer.wrap(numbers), IntBuffer.wrap(own), 0);
        assertEquals(rank + 1, own[0]);
        all = numbers;
      }
      case 3 -> {
        all[rank] = own[0];
        communicator.allReduce(IntBuffer.wrap(all), ReduceOp.SUM);
      }
      case 4 -> {
        int next = (rank + 1) % ranks;
        int before = (rank + ranks - 1) % ranks;
        int[] theirs = new int[1];
        communicator.sendReceive(IntBuffer.wrap(own), next, IntBuffer.wrap(theirs), before, 7);
        assertEquals(before + 1, theirs[0]);
        all = numbers;
      }
      case 5 -> {
        if (rank == 0 && ranks > 1) {
          communicator.send(IntBuffer.wrap(own), 1, 7);
        } else if (rank == 1) {
          communicator.receive(IntBuffer.wrap(own), 0, 7);
          assertEquals(1, own[0]);
        }
        all = numbers;
      }
      default -> {
        try (Communicator part = communicator.split(rank % 2, rank)) {
          part.barrier();
        }
        all = numbers;
      }
    }
    assertArrayEquals(numbers, all);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void rejectsInvalidArguments(int ranks) {
    run(
        ranks,
        sync -> {
          assertThrows(NullPointerException.class, () -> GradientBuckets.builder(null, FLOATS));
          assertThrows(NullPointerException.class, () -> GradientBuckets.builder(sync, null));
          assertThrows(
              NullPointerException.class,
              () -> GradientBuckets.builder(sync, Arrays.asList(FLOATS.get(0), null)));
          Parameter w = new Parameter("w", DataType.FLOAT32, 1);
          Parameter x = new Parameter("x", DataType.FLOAT32, 1);
          refused(
              () -> GradientBuckets.builder(sync, List.of(x, w, x)).build(),
              "the same name: name=x, first=0, second=2, rank=" + sync.rank());
          GradientBuckets.Builder builder = GradientBuckets.builder(sync, FLOATS);
          refused(() -> builder.bucketBytes(0), "bucketBytes=0");
          refused(() -> builder.firstBucketBytes(-1), "firstBucketBytes=-1");
          assertThrows(NullPointerException.class, () -> builder.missing(null));
          assertThrows(NullPointerException.class, () -> builder.computedOn(null));
          refused(() -> new Parameter("w", DataType.FLOAT32, -1), "parameter=w, count=-1");
          refused(() -> new Parameter("w", DataType.FLOAT32, Long.MAX_VALUE), "out of range");
          refused(() -> new Parameter("w", DataType.INT32, 1), "parameter=w, type=INT32");
          assertThrows(NullPointerException.class, () -> new Parameter(null, DataType.FLOAT32, 1));
          assertThrows(NullPointerException.class, () -> new Parameter("w", null, 1));
          try (GradientBuckets buckets = builder.build()) { // the rejected values were not kept
            step(sync, buckets, FLOATS, 0);
            assertAverages(sync, buckets, FLOATS, 0);
            assertThrows(NullPointerException.class, () -> buckets.finish((IntConsumer) null));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void averagesRandomModelsWithRandomOrderAndDelays(int ranks) {
    run(
        ranks,
        sync -> {
          Random same = new Random(4711 + ranks); // all ranks draw the same numbers
          Random own = new Random(sync.rank());
          for (int round = 0; round < 14; round++) {
            List<Parameter> model = new ArrayList<>();
            int size = 1 + same.nextInt(12);
            for (int i = 0; i < size; i++) {
              int most = same.nextInt(5) == 0 ? 1 : same.nextInt(4) == 0 ? 6_000 : 300;
              model.add(
                  new Parameter("p" + i, TYPES[same.nextInt(TYPES.length)], same.nextInt(most)));
            }
            GradientBuckets.Builder builder =
                GradientBuckets.builder(sync, model)
                    .firstBucketBytes(1 + same.nextInt(2_000))
                    .bucketBytes(1 + same.nextInt(20_000))
                    .overlap(same.nextInt(4) != 0);
            if (same.nextBoolean()) {
              builder.unevenSteps();
            }
            try (GradientBuckets buckets = builder.build()) {
              for (int step = 0; step < 15; step++) {
                for (int i : order(size, own.nextInt())) {
                  write(sync, buckets, model, i, 20 * round + step);
                  if (own.nextInt(60) == 0) {
                    Thread.sleep(own.nextInt(4));
                  }
                  buckets.ready(i);
                }
                buckets.finish();
                assertAverages(sync, buckets, model, 20 * round + step);
                if (step == 5) {
                  buckets.rebuild();
                }
              }
            }
          }
        });
  }

  /** Returns the numbers from 0 on, shuffled. */
  private static List<Integer> order(int count, int seed) {
    List<Integer> order = IntStream.range(0, count).boxed().collect(Collectors.toList());
    Collections.shuffle(order, new Random(seed));
    return order;
  }

  private static ByteBuffer numbers(List<Parameter> model, int rank, int parameter, int step) {
    Parameter p = model.get(parameter);
    return Numbers.of(p.type(), rank, first(parameter, step), (int) p.count());
  }

  private static long first(int parameter, int step) {
    return 1_000_003L * step + 10_007L * parameter;
  }

  private static void write(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int i, int step) {
    buckets.gradient(i).copyFrom(numbers(model, sync.rank(), i, step));
  }

  private static void readyAll(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int step) {
    for (int i : order(model.size(), step + sync.rank())) {
      write(sync, buckets, model, i, step);
      buckets.ready(i);
    }
  }

  private static void step(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int step) {
    readyAll(sync, buckets, model, step);
    buckets.finish();
  }

  /** Runs a step and waits for its averages, so that a failure is thrown here. */
  private static void wholeStep(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int step) {
    step(sync, buckets, model, step);
    assertAverages(sync, buckets, model, step);
  }

  private static void assertAverages(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int step) {
    for (int i = 0; i < model.size(); i++) {
      assertAverage(sync, buckets, model, i, step);
    }
  }

  private static void assertAverage(
      GradientSync sync, GradientBuckets buckets, List<Parameter> model, int i, int step) {
    Parameter p = model.get(i);
    assertBits(
        Numbers.reduced(p.type(), ReduceOp.AVERAGE, sync.size(), first(i, step), (int) p.count()),
        buckets.gradient(i),
        "step " + step + ", " + p);
  }

  private static void assertBits(ByteBuffer expected, DeviceBuffer buffer, String what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    int difference = expected.mismatch(actual);
    if (difference >= 0) {
      int size = buffer.type().sizeInBytes();
      byte[] is = new byte[size];
      byte[] wanted = new byte[size];
      actual.get(difference / size * size, is);
      expected.get(difference / size * size, wanted);
      throw new AssertionError(
          "wrong bits: %s, buffer=%s, index=%s, expected=%s, actual=%s"
              .formatted(
                  what, buffer, difference / size, Arrays.toString(wanted), Arrays.toString(is)));
    }
    assertEquals(expected.remaining(), actual.remaining());
  }
}

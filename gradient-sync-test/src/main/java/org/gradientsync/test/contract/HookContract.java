package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.Doubles.read;
import static org.gradientsync.test.contract.Doubles.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.DoubleBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.BucketHook;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Missing;
import org.gradientsync.GradientBuckets.Uneven;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.LossScaler;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.SparseRows;
import org.gradientsync.hooks.Compression;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.hooks.TopK;
import org.gradientsync.local.LocalRanks.RankTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests hooks of buckets, and those that compress gradients, with every reducer. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
public abstract class HookContract {
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 30 * 20),
          new Parameter("low", DataType.BFLOAT16, 24 * 25),
          new Parameter("none", DataType.FLOAT32, 0),
          new Parameter("wide", DataType.FLOAT64, 307), // a prime number
          new Parameter("bias", DataType.FLOAT32, 3),
          new Parameter("b", DataType.FLOAT32, 25 * 32));

  private static final BucketHook EXACT = bucket -> bucket.sync().average(bucket.gradients());
  private static final String REFUSED =
      "a hook calls the sync of its buckets, or the buckets: rank=";

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> several() {
    return sizes().filter(n -> n > 1);
  }

  Stream<Arguments> severalAndOverlap() {
    return several().flatMap(n -> Stream.of(Arguments.of(n, true), Arguments.of(n, false)));
  }

  private void run(int ranks, RankTask task) {
    runner().run(ranks, b -> b.timeout(Duration.ofSeconds(20)), task);
  }

  private static GradientBuckets.Builder small(GradientSync sync) {
    return GradientBuckets.builder(sync, MODEL).firstBucketBytes(1_000).bucketBytes(1_000);
  }

  private static int buckets(GradientSync sync) {
    try (GradientBuckets buckets = small(sync).build()) {
      return buckets.bucketCount();
    }
  }

  /** Not of low rank, and different on each rank. */
  private static double[] gradient(int rank, int parameter, int step) {
    SplittableRandom random = new SplittableRandom(rank * 1_000L + parameter * 100 + step);
    return random.doubles(MODEL.get(parameter).count(), -1, 1).toArray();
  }

  private static void pass(GradientSync sync, GradientBuckets buckets, int step) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      write(buckets.gradient(i), gradient(sync.rank(), i, step));
      buckets.ready(i);
    }
  }

  private static double[] averages(GradientBuckets buckets) {
    return IntStream.range(0, MODEL.size())
        .mapToObj(i -> read(buckets.gradient(i)))
        .flatMapToDouble(Arrays::stream)
        .toArray();
  }

  private static double[] step(GradientSync sync, GradientBuckets buckets, int step) {
    pass(sync, buckets, step);
    buckets.finish();
    return averages(buckets);
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void aHookTakesThePlaceOfTheAverage(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          List<Integer> called = new ArrayList<>();
          BucketHook hook =
              bucket -> {
                called.add(bucket.index());
                requireViews(bucket);
                DeviceBuffer own = bucket.allocate(bucket.gradients().type(), 1);
                assertArrayEquals(new double[1], read(own));
                EXACT.average(bucket);
              };
          try (GradientBuckets plain = small(sync).overlap(overlap).build();
              GradientBuckets buckets = small(sync).overlap(overlap).hook(hook).build()) {
            for (int step = 0; step < 2; step++) {
              assertArrayEquals(step(sync, plain, step), step(sync, buckets, step));
            }
            List<Integer> once = IntStream.range(0, buckets.bucketCount()).boxed().toList();
            assertTrue(once.size() > 2);
            assertEquals(Stream.concat(once.stream(), once.stream()).toList(), called);
          }
        });
  }

  /** A hook has views of the bucket, so it cannot change its size. */
  private static void requireViews(BucketHook.FullBucket bucket) {
    long end = bucket.gradients().count();
    assertThrows(IndexOutOfBoundsException.class, () -> bucket.gradients().slice(0, end + 1));
    for (BucketHook.Part part : bucket.parts()) {
      assertEquals(MODEL.get(part.index()), part.parameter());
      assertEquals(part.parameter().count(), part.gradient().count());
      long past = part.gradient().count() + 1;
      assertThrows(IndexOutOfBoundsException.class, () -> part.gradient().slice(0, past));
    }
  }

  @ParameterizedTest
  @MethodSource("several")
  void ranksTellEachOtherWhatTheyDoWithoutAHook(int ranks) {
    BucketHook useless = bucket -> bucket.gradients().fillZero();
    run(
        ranks,
        sync -> {
          boolean last = sync.rank() == ranks - 1;
          try (GradientBuckets buckets = small(sync).hook(useless).missing(Missing.SKIP).build()) {
            for (int i = 0; i < MODEL.size(); i++) {
              if (i == 1 && last || i > 1) {
                buckets.ready(i);
              }
            }
            buckets.finish();
            assertTrue(buckets.isSkipped(0));
            assertFalse(buckets.isSkipped(1));
            assertFalse(buckets.stopRequested());
            if (last) {
              sync.requestStop();
            }
            step(sync, buckets, 0);
            assertTrue(buckets.stopRequested());
          }
        });
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).hook(EXACT).unevenSteps(Uneven.JOIN).build()) {
            for (int step = 0; step < sync.rank(); step++) {
              step(sync, buckets, step);
            }
            assertEquals(ranks - 1L - sync.rank(), buckets.join(() -> {}));
          }
        });
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void aHookThatThrowsEndsTheStepOnAllRanks(int ranks, boolean overlap) {
    Throwable declared = new ArithmeticException("on purpose");
    Throwable undeclared = new IOException("on purpose"); // as Kotlin's functions can
    Throwable ofCalls = new NotFiniteException("on purpose"); // which all ranks throw in a call
    run(
        ranks,
        sync -> {
          boolean last = sync.rank() == ranks - 1;
          for (int i = 0; i < 5; i++) {
            Throwable thrown = i == 4 ? ofCalls : i % 2 == 0 ? declared : undeclared;
            boolean after = i > 1; // when the others wait for no more calls of hooks
            GradientSync part = sync.split(0, sync.rank());
            int failing = after ? buckets(part) - 1 : 1;
            String expected =
                "the hook of the buckets has thrown: bucket=%d, rank=%d"
                    .formatted(failing, ranks - 1);
            BucketHook hook =
                bucket -> {
                  boolean fails = bucket.index() == failing && last;
                  if (!fails || after) {
                    EXACT.average(bucket);
                  }
                  if (fails) {
                    HookContract.<Error>raise(thrown);
                  }
                };
            try (GradientBuckets buckets = small(part).overlap(overlap).hook(hook).build()) {
              GradientSyncException e =
                  assertThrows(GradientSyncException.class, () -> step(part, buckets, 0));
              if (last && thrown == ofCalls) {
                assertSame(thrown, e);
              } else if (last) {
                assertTrue(e.getMessage().startsWith(expected), e.toString());
                assertSame(thrown, e.getCause());
              } else {
                assertInstanceOf(RankLostException.class, e);
                // Told by that rank, or by another one that has heard of it first.
                String why = "rank %d( \\(.*?\\))? gave up in the middle of a call: %s";
                String like = "(?s).*" + why.formatted(ranks - 1, expected) + ".*";
                assertTrue(e.getMessage().matches(like), e.toString());
              }
              assertThrows(IllegalStateException.class, buckets::finish);
              sync.barrier(); // no rank has left before the others have thrown
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void whatAllRanksThrowInAHookLeavesTheSync(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          BucketHook dense =
              bucket -> {
                DeviceBuffer all = bucket.gradients();
                bucket.sync().average(all.slice(0, all.count() - sync.rank()));
              };
          SparseRows rows = new SparseRows(10 + sync.rank(), 2, new long[0], new float[0]);
          BucketHook sparse = bucket -> bucket.sync().average(rows);
          for (BucketHook hook : List.of(dense, sparse)) {
            try (GradientBuckets buckets = small(sync).overlap(overlap).hook(hook).build()) {
              assertThrows(MismatchedCallException.class, () -> step(sync, buckets, 0));
            }
            sync.barrier();
            try (GradientBuckets buckets = small(sync).overlap(overlap).hook(EXACT).build()) {
              step(sync, buckets, 1);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void aHookMayAverageInTheBackground(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          List<Parameter> model = List.of(new Parameter("large", DataType.FLOAT32, 200_000));
          BucketHook hook = bucket -> bucket.sync().averageAsync(bucket.gradients());
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, model).overlap(overlap).hook(hook).build()) {
            for (int step = 1; step <= 20; step++) {
              float[] own = new float[200_000];
              Arrays.fill(own, step * (sync.rank() + 1));
              buckets.gradient(0).copyFrom(own);
              buckets.ready(0);
              buckets.finish();
              buckets.gradient(0).copyTo(own);
              Arrays.sort(own);
              assertEquals(step * (ranks + 1) / 2f, own[0]);
              assertEquals(own[0], own[own.length - 1]);
            }
          }
        });
  }

  /** On all ranks, so that no call of another rank ends it. */
  @Test
  void aHookThatBlocksIsInterrupted() {
    int ranks = several().findFirst().orElseThrow();
    runner()
        .run(
            ranks,
            b -> b.timeout(Duration.ofSeconds(2)),
            sync -> {
              for (boolean swallows : new boolean[] {false, true}) {
                BucketHook hook =
                    bucket -> {
                      EXACT.average(bucket);
                      if (bucket.index() == 1) {
                        block(swallows);
                        for (int i = 0; i < 2; i++) { // it does not take the hint at once
                          block(true);
                        }
                      }
                    };
                GradientSync part = sync.split(0, sync.rank());
                try (GradientBuckets buckets = small(part).overlap(swallows).hook(hook).build()) {
                  GradientSyncException e =
                      assertThrows(GradientSyncException.class, () -> step(part, buckets, 0));
                  String expected =
                      "the hook of the buckets was interrupted, because it neither returned nor"
                          + " made a call for longer than the time-out of 2 s: bucket=1, rank=";
                  // Of this rank, or of one that came first.
                  assertTrue(e.getMessage().contains(expected), e.toString());
                }
                assertFalse(Thread.interrupted());
                sync.barrier();
              }
            });
  }

  private static void block(boolean swallows) {
    try {
      new CountDownLatch(1).await();
    } catch (InterruptedException e) {
      if (!swallows) {
        throw new IllegalStateException(e);
      }
    }
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void raise(Throwable thrown) throws T {
    throw (T) thrown;
  }

  @ParameterizedTest
  @MethodSource("severalAndOverlap")
  void aHookCannotCallWhatWaitsForIt(int ranks, boolean overlap) {
    run(
        ranks,
        sync -> {
          AtomicReference<GradientBuckets> used = new AtomicReference<>();
          Map<String, Runnable> calls = new LinkedHashMap<>();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1)) {
            calls.put("average", () -> sync.average(buffer));
            calls.put("average of an array", () -> sync.average(new float[1]));
            calls.put("grouped", () -> sync.grouped(() -> sync.average(buffer)));
            calls.put("mean", () -> sync.mean(1));
            calls.put("barrier", sync::barrier);
            calls.put("communicator", () -> sync.communicator().barrier());
            calls.put("split", () -> sync.split(0, 0));
            calls.put("close of the sync", sync::close);
            calls.put("finish", () -> used.get().finish());
            calls.put("ready", () -> used.get().ready(0));
            calls.put("close of the buckets", () -> used.get().close());
            BucketHook hook =
                bucket -> {
                  calls.forEach(
                      (name, call) -> {
                        String message =
                            assertThrows(IllegalStateException.class, call::run, name).getMessage();
                        assertTrue(message.startsWith(REFUSED), name + ": " + message);
                      });
                  EXACT.average(bucket);
                };
            try (GradientBuckets plain = small(sync).overlap(overlap).build();
                GradientBuckets buckets = small(sync).overlap(overlap).hook(hook).build()) {
              used.set(buckets);
              assertArrayEquals(step(sync, plain, 0), step(sync, buckets, 0));
            }
            try (GradientBuckets buckets =
                small(sync).overlap(overlap).hook(b -> sync.average(b.gradients())).build()) {
              String message =
                  assertThrows(GradientSyncException.class, () -> step(sync, buckets, 0))
                      .getMessage();
              assertTrue(message.contains(REFUSED), message);
            }
          }
        });
  }

  /** While the training's thread closes them, and so waits for the hook. */
  @ParameterizedTest
  @MethodSource("several")
  void aHookCannotCloseItsBucketsWithTheTraining(int ranks) {
    run(
        ranks,
        sync -> {
          AtomicReference<GradientBuckets> used = new AtomicReference<>();
          AtomicReference<Throwable> refused = new AtomicReference<>();
          CountDownLatch begun = new CountDownLatch(1);
          Thread training = Thread.currentThread();
          BucketHook hook =
              bucket -> {
                begun.countDown();
                if (Thread.currentThread() == training) {
                  return; // with a reducer that only enqueues; then nobody can close them meanwhile
                }
                try {
                  new CountDownLatch(1).await();
                } catch (InterruptedException e) {
                  refused.set(assertThrows(IllegalStateException.class, used.get()::close));
                }
              };
          GradientSync part = sync.split(0, sync.rank());
          GradientBuckets buckets = small(part).overlap(true).hook(hook).build();
          used.set(buckets);
          buckets.ready(MODEL.size() - 1);
          buckets.ready(MODEL.size() - 2); // a bucket is full
          begun.await();
          buckets.close();
          if (sync.reducer().equals("peer")) {
            assertNull(refused.get());
          } else {
            assertTrue(refused.get().getMessage().startsWith(REFUSED), refused::toString);
          }
          sync.barrier();
        });
  }

  @ParameterizedTest
  @MethodSource("several")
  void optionsThatDoNotGoWithAHookAreRefused(int ranks) {
    run(
        ranks,
        sync -> {
          String message =
              assertThrows(
                      IllegalArgumentException.class,
                      () -> small(sync).sharded().hook(EXACT).build())
                  .getMessage();
          assertTrue(message.startsWith("sharded buckets cannot have a hook: rank="), message);
          GradientBuckets.Builder some = small(sync);
          message =
              assertThrows(
                      MismatchedCallException.class,
                      () -> (sync.rank() == 0 ? some : some.hook(EXACT)).build())
                  .getMessage();
          assertTrue(message.contains("hook="), message);
          sync.barrier();
        });
  }

  @ParameterizedTest
  @MethodSource("several")
  void aHookOutlivesTheLayout(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientBuckets buckets = small(sync).hook(new TopK(1)).build();
              GradientBuckets plain = small(sync).build()) {
            for (int i = 0; i < MODEL.size(); i++) { // in another order than the model's
              buckets.ready(i);
            }
            buckets.finish();
            assertTrue(buckets.rebuild());
            assertArrayEquals(step(sync, plain, 1), step(sync, buckets, 1), 0.01);
          }
        });
  }

  /** The state is in the memory of the buckets, which they close. */
  @ParameterizedTest
  @MethodSource("several")
  void whatWasNotSentOutlivesTheBuckets(int ranks) {
    run(
        ranks,
        sync -> {
          for (Supplier<Compression> compression : compressions()) {
            Compression hook = compression.get().warmUp(0);
            byte[] state;
            try (GradientBuckets buckets = small(sync).hook(hook).build()) {
              for (int i = 0; i < MODEL.size(); i++) { // in another order than the model's
                write(buckets.gradient(i), gradient(sync.rank(), i, 0));
                buckets.ready(i);
              }
              buckets.finish();
              state = save(hook);
              assertArrayEquals(state, save(hook));
              assertTrue(buckets.rebuild());
              assertArrayEquals(state, save(hook));
              step(sync, buckets, 1);
              assertFalse(Arrays.equals(state, save(hook)));
              load(hook, state);
              assertArrayEquals(state, save(hook));
              step(sync, buckets, 1);
              state = save(hook);
            }
            assertArrayEquals(state, save(hook));
          }
        });
  }

  static List<Supplier<Compression>> compressions() {
    return List.of(() -> new PowerSgd(2).rows("a", 30).warmUp(1), () -> new TopK(0.05).warmUp(1));
  }

  /** With the same gradients in each step, the sum of all results lags behind by the last error. */
  @ParameterizedTest
  @MethodSource("several")
  void whatWasNotSentIsSentLater(int ranks) {
    run(
        ranks,
        sync -> {
          for (Supplier<Compression> compression : compressions()) {
            double kept = deviation(sync, compression.get(), 40);
            double lost = deviation(sync, compression.get().errorFeedback(false), 40);
            assertTrue(kept < 0.5 * lost, compression.get() + ": " + kept + ", without " + lost);
          }
        });
  }

  /** How far the mean of the results is from the average, relative to it. */
  private static double deviation(GradientSync sync, Compression hook, int steps) {
    try (GradientBuckets plain = small(sync).build();
        GradientBuckets buckets = small(sync).hook(hook).build()) {
      double[] exact = step(sync, plain, 0);
      assertArrayEquals(exact, step(sync, buckets, 0)); // warms up
      double[] sum = new double[exact.length];
      for (int step = 0; step < steps; step++) {
        double[] result = step(sync, buckets, 0);
        Arrays.setAll(sum, i -> sum[i] + result[i]);
      }
      double apart = 0;
      double all = 0;
      for (int i = 0; i < sum.length; i++) {
        apart += Math.pow(sum[i] / steps - exact[i], 2);
        all += exact[i] * exact[i];
      }
      return Math.sqrt(apart / all);
    }
  }

  @ParameterizedTest
  @MethodSource("several")
  void gradientsOfLowRankAreAveragedByPowerSgd(int ranks) {
    run(
        ranks,
        sync -> {
          Compression hook = new PowerSgd(2).rows("a", 30);
          try (GradientBuckets buckets = small(sync).hook(hook).build()) {
            for (int step = 0; step < 3; step++) {
              double[] expected = new double[600];
              for (int rank = 0; rank < ranks; rank++) {
                double[] one = product(rank);
                Arrays.setAll(expected, i -> expected[i] + one[i] / ranks);
              }
              for (int i = MODEL.size() - 1; i >= 0; i--) {
                if (i == 0) {
                  write(buckets.gradient(0), product(sync.rank()));
                }
                buckets.ready(i);
              }
              buckets.finish();
              // The errors of products are relative to the largest elements.
              double most = Arrays.stream(expected).map(Math::abs).max().orElseThrow();
              assertArrayEquals(expected, read(buckets.gradient(0)), 1e-5 * most);
            }
            long thin = (30 + 20 + 25 + 24 + 29 + 28) * 2 * 4 + (18 + 18) * 2 * 8;
            assertEquals(3 * (thin + 3 * 4), hook.bytes());
          }
        });
  }

  /** Products of large or small elements would leave the range of their type. */
  @ParameterizedTest
  @MethodSource("several")
  void powerSgdTakesElementsOfAnySize(int ranks) {
    Map<Double, DataType> scales =
        Map.of(
            1e-30, DataType.FLOAT32,
            1e30, DataType.FLOAT32,
            1e-200, DataType.FLOAT64,
            1e200, DataType.FLOAT64);
    run(
        ranks,
        sync -> {
          for (double scale : scales.keySet().stream().sorted().toList()) {
            List<Parameter> model = List.of(new Parameter("a", scales.get(scale), 600));
            BucketHook hook = new PowerSgd(2).rows("a", 30);
            try (GradientBuckets buckets =
                GradientBuckets.builder(sync, model).hook(hook).build()) {
              for (int step = 0; step < 3; step++) {
                double[] expected = new double[600];
                for (int rank = 0; rank < ranks; rank++) {
                  double[] one = product(rank);
                  Arrays.setAll(expected, i -> expected[i] + scale * one[i] / ranks);
                }
                double[] own = Arrays.stream(product(sync.rank())).map(x -> scale * x).toArray();
                write(buckets.gradient(0), own);
                buckets.ready(0);
                buckets.finish();
                double most = Arrays.stream(expected).map(Math::abs).max().orElseThrow();
                assertArrayEquals(expected, read(buckets.gradient(0)), 1e-5 * most, "" + scale);
              }
            }
          }
        });
  }

  /** Of 30 rows; the ranks' matrices have two columns' space in common. */
  private static double[] product(int rank) {
    return IntStream.range(0, 600)
        .mapToDouble(
            i ->
                Math.sin(i / 20) * Math.cos(i % 20 + rank)
                    + Math.cos(i / 20) * (rank + i % 20 / 9.0))
        .toArray();
  }

  @ParameterizedTest
  @MethodSource("several")
  void savedStateContinuesWithTheSameBits(int ranks) {
    run(
        ranks,
        sync -> {
          for (Supplier<Compression> compression : compressions()) {
            Compression whole = compression.get();
            Compression second = compression.get();
            double[] expected;
            try (GradientBuckets buckets = small(sync).hook(whole).build()) {
              step(sync, buckets, 0);
              step(sync, buckets, 1);
              load(second, save(whole));
              expected = step(sync, buckets, 2);
            }
            requireSameEverywhere(sync, expected);
            try (GradientBuckets buckets = small(sync).hook(second).build()) {
              assertArrayEquals(expected, step(sync, buckets, 2));
            }
            Compression fresh = compression.get().warmUp(0);
            try (GradientBuckets buckets = small(sync).hook(fresh).build()) {
              assertFalse(Arrays.equals(expected, step(sync, buckets, 2)));
            }
            assertNotEquals(0, whole.bytes());
            String message =
                assertThrows(IOException.class, () -> load(new TopK(0.5), save(whole)))
                    .getMessage();
            assertTrue(message.startsWith("state is another hook's: hook="), message);
          }
        });
  }

  @Test
  void aDamagedStateIsRefused() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeUTF("topk:0.5");
    out.writeLong(1);
    out.writeInt(1);
    out.writeUTF("error of a parameter");
    out.writeInt(Integer.MAX_VALUE); // elements, of which there are none
    EOFException e =
        assertThrows(EOFException.class, () -> load(new TopK(0.5), bytes.toByteArray()));
    assertEquals("state is cut off: hook=topk:0.5", e.getMessage());
  }

  @ParameterizedTest
  @MethodSource("several")
  void aStepThatIsNotFiniteIsForgotten(int ranks) {
    run(
        ranks,
        sync -> {
          for (Supplier<Compression> compression : compressions()) {
            try (GradientBuckets buckets = small(sync).hook(compression.get().warmUp(0)).build()) {
              step(sync, buckets, 0);
              for (double bad : new double[] {Double.NaN, Double.POSITIVE_INFINITY}) {
                for (int i = MODEL.size() - 1; i >= 0; i--) {
                  double[] values = gradient(sync.rank(), i, 1);
                  if (i == 0 && sync.rank() == ranks - 1) {
                    values[7] = bad;
                  }
                  write(buckets.gradient(i), values);
                  buckets.ready(i);
                }
                buckets.finish();
                assertFalse(buckets.isFinite());
                step(sync, buckets, 2);
                assertTrue(buckets.isFinite());
              }
            }
          }
        });
  }

  /** Powers of two do not round, so the results are those without a scale. */
  @ParameterizedTest
  @MethodSource("several")
  void whatWasNotSentFollowsTheLossScale(int ranks) {
    run(
        ranks,
        sync -> {
          for (Supplier<Compression> compression : compressions()) {
            LossScaler scaler = new LossScaler(16, 2);
            Compression hook = compression.get();
            try (GradientBuckets plain = small(sync).hook(compression.get()).build();
                GradientBuckets buckets = small(sync).hook(hook).build()) {
              for (int step = 0; step < 6; step++) {
                double[] expected = step(sync, plain, step);
                double scale = scaler.scale();
                double[] scaled = scaledStep(sync, buckets, step, scale);
                assertTrue(scaler.step(buckets));
                Arrays.setAll(scaled, i -> scaled[i] / scale);
                assertArrayEquals(expected, scaled, hook + ", step " + step);
                if (step == 3) {
                  scaledStep(sync, buckets, step, Double.NaN);
                  assertFalse(scaler.step(buckets));
                  load(hook, save(hook)); // what PowerSgd has on the device is now on the host
                  assertFalse(scaler.step(buckets));
                }
              }
            }
            assertEquals(32, scaler.scale());
          }
        });
  }

  private static double[] scaledStep(
      GradientSync sync, GradientBuckets buckets, int step, double scale) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      double[] values = gradient(sync.rank(), i, step);
      write(buckets.gradient(i), Arrays.stream(values).map(value -> value * scale).toArray());
      buckets.ready(i);
    }
    buckets.finish();
    return averages(buckets);
  }

  @ParameterizedTest
  @MethodSource("several")
  void whatOverflowsIsSentLater(int ranks) {
    run(
        ranks,
        sync -> {
          List<Parameter> model = List.of(new Parameter("a", DataType.FLOAT16, 2));
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, model).hook(new TopK(0.5)).build()) {
            double[][] given = {{60_000, 40_000}, {0, 40_000}, {0, 0}};
            double[][] sent = {{60_000, 0}, {0, Double.POSITIVE_INFINITY}, {0, 40_000}};
            for (int step = 0; step < given.length; step++) {
              write(buckets.gradient(0), given[step]);
              buckets.ready(0);
              buckets.finish();
              assertArrayEquals(sent[step], read(buckets.gradient(0)), 16, "step " + step);
            }
          }
        });
  }

  private static void requireSameEverywhere(GradientSync sync, double[] values) {
    double[] all = new double[values.length * sync.size()];
    sync.communicator().allGather(DoubleBuffer.wrap(values), DoubleBuffer.wrap(all));
    for (int rank = 0; rank < sync.size(); rank++) {
      int first = rank * values.length;
      assertArrayEquals(values, Arrays.copyOfRange(all, first, first + values.length));
    }
  }

  private static byte[] save(BucketHook hook) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      hook.save(new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static void load(BucketHook hook, byte[] state) throws IOException {
    hook.load(new DataInputStream(new ByteArrayInputStream(state)));
  }
}

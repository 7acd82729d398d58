package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.gradientsync.core.buckets.BucketSync;
import org.gradientsync.core.buckets.BucketsBuilder;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests gradient buckets with ranks as threads, which a test can stop anywhere. */
@Timeout(60)
@SuppressWarnings("try") // what is closed early
class GradientBucketsTest {
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 1000),
          new Parameter("b", DataType.FLOAT32, 10),
          new Parameter("c", DataType.FLOAT64, 100));

  private static GradientBuckets build(GradientSync sync, boolean overlap) {
    return GradientBuckets.builder(sync, MODEL)
        .firstBucketBytes(1)
        .bucketBytes(1)
        .overlap(overlap)
        .build();
  }

  private static void step(GradientBuckets buckets) {
    step(buckets, MODEL.size());
  }

  private static void step(GradientBuckets buckets, int parameters) {
    for (int i = parameters - 1; i >= 0; i--) {
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** The table of a mismatch between rank 0 and rank 1. */
  private static String mismatch(RankTask first, RankTask second) {
    List<String> messages = Collections.synchronizedList(new ArrayList<>());
    LocalRanks.run(
        2,
        sync -> {
          RankTask task = sync.rank() == 0 ? first : second;
          messages.add(
              assertThrows(MismatchedCallException.class, () -> task.run(sync)).getMessage());
        });
    String message = messages.get(0);
    assertFalse(message.contains("communicator."), message); // the program did not call it
    return message;
  }

  private static final String HINT = "with unevenSteps()";

  @Test
  void unevenStepsAreSuspectedWhereTheyMayBe() {
    for (boolean overlap : new boolean[] {true, false}) {
      String text = mismatch(sync -> step(build(sync, overlap)), buildAnd(overlap, s -> s.mean(1)));
      assertTrue(text.contains("rank 1: mean(), call=") && text.contains(HINT), text);
      text =
          mismatch(sync -> step(build(sync, overlap)), buildAnd(overlap, s -> build(s, overlap)));
      assertTrue(text.contains("rank 1: GradientBuckets.build(), call="), text);
      assertTrue(text.contains(HINT), text);
    }
  }

  private static RankTask buildAnd(boolean overlap, Consumer<GradientSync> then) {
    return sync -> {
      build(sync, overlap);
      then.accept(sync);
    };
  }

  @Test
  void unevenStepsAreNotSuspectedOfBucketsThatAllowThem() {
    RankTask steps = sync -> step(GradientBuckets.builder(sync, MODEL).unevenSteps().build());
    RankTask mean =
        sync -> {
          GradientBuckets.builder(sync, MODEL).unevenSteps().build();
          sync.mean(1);
        };
    String text = mismatch(steps, mean);
    assertTrue(text.contains("\"uneven bucket 0: ") && text.contains("mean()"), text);
    assertFalse(text.contains(HINT), text);
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, MODEL).unevenSteps().build()) {
            if (sync.rank() == 0) {
              String lost = assertThrows(RankLostException.class, () -> step(buckets)).getMessage();
              assertTrue(lost.contains("uneven bucket 0") && !lost.contains(HINT), lost);
            }
          }
        });
  }

  @Test
  void unevenStepsAreNotSuspectedAfterBucketsThatAllowThem() {
    for (boolean uneven : new boolean[] {true, false}) {
      LocalRanks.run(
          2,
          sync -> {
            GradientBuckets.Builder builder = GradientBuckets.builder(sync, MODEL);
            step((uneven ? builder.unevenSteps() : builder).build());
            if (sync.rank() == 0) {
              String lost =
                  assertThrows(RankLostException.class, () -> sync.average(new float[1]))
                      .getMessage();
              assertEquals(uneven, !lost.contains(HINT), lost);
            }
          });
    }
  }

  @Test
  void unevenStepsAreNotSuspectedInTheMiddleOfAStep() {
    RankTask middle =
        sync -> {
          GradientBuckets buckets = build(sync, true);
          buckets.ready(2);
          sync.mean(1);
        };
    String text = mismatch(sync -> step(build(sync, true)), middle);
    assertTrue(text.contains("\"bucket 1: ") && text.contains("mean()"), text);
    assertFalse(text.contains(HINT), text);
  }

  @Test
  void unevenStepsAreNotSuspectedWhereARankRebuildsOrClips() {
    String text =
        mismatch(
            sync -> {
              GradientBuckets buckets = build(sync, true);
              step(buckets);
              step(buckets);
            },
            sync -> {
              GradientBuckets buckets = build(sync, true);
              step(buckets);
              buckets.rebuild();
            });
    assertTrue(text.contains("rank 1: GradientBuckets.rebuild(), call="), text);
    assertFalse(text.contains(HINT), text);
    text =
        mismatch(
            sync -> {
              GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).sharded().build();
              step(buckets);
              step(buckets);
            },
            sync -> {
              GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).sharded().build();
              step(buckets);
              buckets.clipByGlobalNorm(1);
            });
    assertTrue(text.contains("rank 1: GradientBuckets.clipByGlobalNorm(), call="), text);
    assertFalse(text.contains(HINT), text);
  }

  @Test
  void aRankWithoutParametersIsNamed() {
    String text =
        mismatch(
            sync -> GradientBuckets.builder(sync, MODEL).build(),
            sync -> GradientBuckets.builder(sync, List.of()).build());
    assertTrue(text.contains("the ranks' parameters differ: first=0"), text);
    assertTrue(text.contains("rank 0: a FLOAT32[1000]"), text);
    assertTrue(text.contains("rank 1: no such parameter"), text);
  }

  @Test
  void errorsShortenNames() {
    String name = "n".repeat(1_000_000);
    Parameter parameter = new Parameter(name, DataType.FLOAT32, 1);
    assertTrue(parameter.toString().length() < 300);
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1).named(name)) {
      assertEquals(name, buffer.name());
      assertTrue(buffer.toString().length() < 100);
      assertTrue(
          assertThrows(IndexOutOfBoundsException.class, () -> buffer.slice(1, 1))
                  .getMessage()
                  .length()
              < 200);
    }
  }

  @Test
  void theFirstBucketHasOneMebibyteAndOthersTwentyFive() {
    long line = 64; // elements in 256 bytes
    long first = (1 << 20) / 4;
    long full = (25 << 20) / 4;
    List<Parameter> model = new ArrayList<>();
    model.add(new Parameter("rest", DataType.FLOAT32, 1));
    model.add(new Parameter("fills", DataType.FLOAT32, line));
    model.add(new Parameter("nearly", DataType.FLOAT32, full - line));
    model.add(new Parameter("fills first", DataType.FLOAT32, line));
    model.add(new Parameter("nearly first", DataType.FLOAT32, first - line));
    try (GradientSync sync = GradientSync.create();
        GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
      assertEquals(3, buckets.bucketCount());
      int[] bucketOf = new int[5];
      for (int i = 0; i < 5; i++) {
        bucketOf[i] = buckets.bucketOf(i);
      }
      assertArrayEquals(new int[] {2, 1, 1, 0, 0}, bucketOf);
    }
  }

  /** The first step must not register or allocate what building could have. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void buildingPreparesTheCallsOfAStep(boolean sharded) {
    LocalRanks.run(
        2,
        sync -> {
          List<CollectiveCall> prepared = new ArrayList<>();
          List<CollectiveCall> made = new ArrayList<>();
          BucketSync seen = watched((BucketSync) sync, prepared, made);
          BucketsBuilder builder = new BucketsBuilder(seen, MODEL).firstBucketBytes(1);
          try (GradientBuckets buckets = (sharded ? builder.sharded() : builder).build()) {
            assertEquals(List.of(), made);
            int calls = prepared.size();
            assertEquals((sharded ? 2 : 1) * buckets.bucketCount(), calls);
            for (int step = 0; step < 2; step++) {
              step(buckets);
              if (sharded) {
                buckets.update((gradient, weight, shard) -> {});
              }
            }
            assertEquals(calls, prepared.size());
            assertEquals(2 * calls, made.size());
            assertTrue(prepared.containsAll(made), () -> prepared + ", " + made);
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theNormTellsWhetherAveragesAreFinite(boolean sharded) {
    LocalRanks.run(
        2,
        sync -> {
          AtomicInteger exchanges = new AtomicInteger();
          BucketSync seen =
              watched((BucketSync) sync, "ownCommunicator", exchanges::incrementAndGet);
          for (List<Parameter> model : List.of(MODEL, MODEL.subList(0, 2))) { // without doubles
            BucketsBuilder builder = new BucketsBuilder(seen, model);
            LossScaler scaler = new LossScaler(4, 100);
            try (GradientBuckets buckets = (sharded ? builder.sharded() : builder).build()) {
              float[] values = new float[1000];
              for (float odd : new float[] {1, Float.NaN, Float.MAX_VALUE, 1 / 0f, 1}) {
                values[999] = sync.rank() == 0 ? odd : 1; // sums of them are in one shard only
                buckets.gradient(0).copyFrom(values);
                step(buckets, model.size());
                boolean finite = Float.isFinite(odd);
                boolean unclear = Float.isInfinite(odd) && model == MODEL;
                exchanges.set(0);
                double norm = buckets.clipByGlobalNorm(Float.MAX_VALUE);
                assertEquals(finite, Double.isFinite(norm), () -> "norm=" + norm);
                assertEquals(finite, scaler.step(buckets));
                assertEquals(finite, buckets.isFinite());
                assertEquals(sharded ? unclear ? 2 : 1 : 0, exchanges.get(), "odd=" + odd);
              }
              exchanges.set(0);
              Arrays.fill(values, Float.NaN); // not known from the step before
              buckets.gradient(0).copyFrom(values);
              step(buckets, model.size());
              assertFalse(buckets.isFinite());
              assertTrue(Double.isNaN(buckets.clipByGlobalNorm(1)));
              assertEquals(sharded ? 2 : 0, exchanges.get());
            }
          }
        });
  }

  /** Calls back before a method is called. */
  private static BucketSync watched(BucketSync sync, String method, Runnable before) {
    return (BucketSync)
        Proxy.newProxyInstance(
            BucketSync.class.getClassLoader(),
            new Class<?>[] {BucketSync.class},
            (proxy, called, arguments) -> {
              if (called.getName().equals(method)) {
                before.run();
              }
              return called.invoke(sync, arguments);
            });
  }

  /** Notes the calls that are prepared, and those that are made. */
  private static BucketSync watched(
      BucketSync sync, List<CollectiveCall> prepared, List<CollectiveCall> made) {
    return (BucketSync)
        Proxy.newProxyInstance(
            BucketSync.class.getClassLoader(),
            new Class<?>[] {BucketSync.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("prepare")) {
                prepared.add(((CollectiveCall) arguments[0]).copy());
              } else if (method.getName().equals("runInTurn")) {
                made.add(((CollectiveCall) arguments[0]).copy());
              }
              return method.invoke(sync, arguments);
            });
  }

  @Test
  void readyStartsTheAverageWithoutWaiting() {
    CountDownLatch handed = new CountDownLatch(1);
    CountDownLatch averaged = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets = build(sync, true)) {
            if (sync.rank() == 1) {
              buckets.ready(2);
              buckets.ready(1); // does not wait for rank 0
              handed.countDown();
              averaged.await(); // does not need finish()
              buckets.ready(0);
            } else {
              handed.await();
              DeviceBuffer gradient = buckets.gradient(2);
              double[] values = new double[100];
              Arrays.fill(values, 8);
              gradient.copyFrom(values);
              buckets.ready(2);
              while (values[99] != 4) {
                gradient.copyTo(values);
                Thread.sleep(1);
              }
              averaged.countDown();
              buckets.ready(1);
              buckets.ready(0);
            }
            buckets.finish();
          }
        });
  }

  @Test
  void withoutOverlapNothingStartsBeforeFinish() {
    CountDownLatch looked = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets = build(sync, false)) {
            for (int i = 0; i < MODEL.size(); i++) {
              buckets.ready(i);
            }
            if (sync.rank() == 0) {
              sync.barrier(); // would not match an average
            } else {
              sync.barrier();
              looked.countDown();
            }
            buckets.finish();
          }
        });
    assertEquals(0, looked.getCount());
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anInterruptEndsFinish(boolean overlap) {
    CountDownLatch ended = new CountDownLatch(1);
    LocalRanks.run(
        3,
        sync -> {
          try (GradientBuckets buckets = build(sync, overlap)) {
            step(buckets);
            if (sync.rank() == 0) {
              Thread.currentThread().interrupt();
              RankLostException e = assertThrows(RankLostException.class, () -> step(buckets));
              assertTrue(Thread.interrupted());
              assertTrue(e.getMessage().contains("interrupted while waiting"), e.getMessage());
              assertThrows(IllegalStateException.class, () -> step(buckets));
              assertThrows(RankLostException.class, sync::barrier);
              buckets.close();
              sync.close();
              ended.countDown();
            } else {
              ended.await();
              assertThrows(RankLostException.class, () -> step(buckets));
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anInterruptFromElsewhereEndsFinish(boolean overlap) {
    CountDownLatch ended = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets = build(sync, overlap)) {
            if (sync.rank() == 0) {
              Thread rank = Thread.currentThread();
              Thread other =
                  new Thread(
                      () -> {
                        while (rank.getState() == Thread.State.RUNNABLE) {
                          Thread.onSpinWait(); // until it waits
                        }
                        rank.interrupt();
                      });
              other.start();
              assertThrows(RankLostException.class, () -> step(buckets));
              ended.countDown();
              other.join();
            } else {
              ended.await();
            }
          } catch (InterruptedException e) {
            assertEquals(
                0, sync.rank()); // finish() leaves the interrupt flag set, so Thread.join() throws
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aRankThatThrowsEndsTheRun(boolean overlap) {
    List<Throwable> others = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch stepped = new CountDownLatch(4); // a slow rank may still be in its first step
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    4,
                    sync -> {
                      try (GradientBuckets buckets = build(sync, overlap)) {
                        step(buckets);
                        stepped.countDown();
                        buckets.ready(2);
                        if (sync.rank() == 2) {
                          stepped.await();
                          throw new ArithmeticException("mine");
                        }
                        buckets.ready(1);
                        buckets.ready(0);
                        others.add(assertThrows(RankLostException.class, buckets::finish));
                      }
                    }));
    assertInstanceOf(ArithmeticException.class, e.getCause());
    assertEquals(3, others.size());
  }

  @Test
  void aRankThatThrowsAndClosesNothingEndsTheRun() {
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    2,
                    sync -> {
                      GradientBuckets buckets = build(sync, true);
                      buckets.ready(2);
                      if (sync.rank() == 1) {
                        throw new ArithmeticException("mine");
                      }
                      buckets.ready(1);
                      buckets.ready(0);
                      buckets.finish();
                    }));
    assertInstanceOf(ArithmeticException.class, e.getCause());
  }

  @Test
  void closingCancelsARunningAverage() {
    CountDownLatch closed = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets = build(sync, true)) {
            if (sync.rank() == 0) {
              buckets.ready(2);
              buckets.close(); // rank 1 has not come
              assertThrows(IllegalStateException.class, sync::barrier);
              sync.close();
              closed.countDown();
            } else {
              closed.await();
              assertThrows(RankLostException.class, () -> step(buckets));
            }
          }
        });
  }

  @Test
  void theCommunicationThreadEndsWithTheSync() throws InterruptedException {
    List<Thread> threads = Collections.synchronizedList(new ArrayList<>());
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets a = build(sync, true);
              GradientBuckets b = build(sync, true)) {
            step(a);
            step(b);
            CommunicationThread.Lane lane = ((BucketSync) sync).communicationThread().lane();
            lane.await(lane.submit(() -> note(threads)));
          }
        });
    assertEquals(2, threads.size()); // one per rank, for any number of buckets
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void note(List<Thread> threads) {
    threads.add(Thread.currentThread());
  }

  /**
   * One of several threads that compute gradients fails and closes the buckets before the others
   * notice.
   */
  @Test
  void closingWhileAnotherThreadIsReady() {
    List<Parameter> model = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      model.add(new Parameter("p" + i, DataType.FLOAT32, 50));
    }
    List<String> wrong = Collections.synchronizedList(new ArrayList<>());
    for (int round = 0; round < 60; round++) {
      long delay = round % 20 * 10_000;
      LocalRanks.run(
          2,
          sync -> {
            GradientBuckets buckets =
                GradientBuckets.builder(sync, model).firstBucketBytes(1).bucketBytes(1).build();
            Thread worker =
                new Thread(
                    () -> {
                      try {
                        for (int i = model.size() - 1; i >= 0; i--) {
                          buckets.ready(i);
                        }
                      } catch (IllegalStateException e) {
                        wrong.add(e.getMessage());
                      }
                    });
            worker.start();
            if (sync.rank() == 0) {
              LockSupport.parkNanos(delay);
            } else {
              worker.join();
            }
            buckets.close();
            worker.join();
            try {
              sync.barrier();
            } catch (GradientSyncException | IllegalStateException e) {
              wrong.add(e.getMessage());
            }
          });
    }
    // Ranks that end a step in the middle lose each other, but none averages a closed buffer.
    wrong.removeIf(
        text -> !text.contains("buffer is closed") && !text.contains("failed in the middle"));
    assertEquals(List.of(), wrong);
  }
}

package org.gradientsync.local;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.stream.LongStream;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Logged;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.PendingAverage;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.SumOrder;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.local.LocalWorld;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests ranks as threads: how they start, fail and end. */
@Timeout(240)
class LocalRanksTest {
  @Test
  void aFailingRankEndsTheOthers() {
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    4,
                    sync -> {
                      if (sync.rank() == 2) {
                        throw new java.io.IOException("boom");
                      }
                      while (true) {
                        sync.barrier();
                      }
                    }));
    assertTrue(
        e.getMessage().contains("rank 2") && e.getMessage().contains("boom"), e.getMessage());
    assertInstanceOf(java.io.IOException.class, e.getCause());
  }

  @Test
  void aFailureInTheBackgroundOfOneRankEndsTheOthers() {
    CountDownLatch closed = new CountDownLatch(1);
    LocalRanks.run(
        2,
        builder -> builder.timeout(Duration.ofSeconds(20)),
        sync -> {
          DeviceBuffer second = sync.allocate(DataType.FLOAT32, 3);
          try (DeviceBuffer first = sync.allocate(DataType.FLOAT32, 3)) {
            if (sync.rank() == 0) {
              sync.averageAsync(first);
              PendingAverage average = sync.averageAsync(second); // behind the first
              second.close();
              closed.countDown();
              assertThrows(IllegalStateException.class, average::await);
            } else {
              closed.await();
              sync.average(first);
              String text =
                  assertThrows(RankLostException.class, () -> sync.average(second)).getMessage();
              String why =
                  "gave up in the middle of a call: a call in the background has failed: error=";
              assertTrue(text.contains(why), text);
              second.close();
            }
          }
        });
  }

  @Test
  void callReturnsTheResultsInTheOrderOfTheRanks() {
    assertEquals(
        Arrays.asList("0 of 3", null, "2 of 3"),
        LocalRanks.call(
            3,
            sync -> {
              Thread.sleep(60 - 20 * sync.rank());
              return sync.rank() == 1 ? null : sync.rank() + " of " + sync.size();
            }));
    assertEquals(
        List.of("local"), LocalRanks.call(1, b -> b.reducer("local"), GradientSync::reducer));
  }

  @Test
  void aFailingRankWakesThoseThatSleep() {
    assertThrows(
        GradientSyncException.class,
        () ->
            LocalRanks.run(
                2,
                sync -> {
                  if (sync.rank() == 0) {
                    throw new IllegalStateException("boom");
                  }
                  Thread.sleep(Long.MAX_VALUE);
                }));
  }

  @Test
  void aLateRankIsNamed() {
    CountDownLatch done = new CountDownLatch(1);
    LocalRanks.run(
        3,
        b -> b.timeout(Duration.ofMillis(300)),
        sync -> {
          if (sync.rank() == 1) {
            done.await();
            return;
          }
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
            RankLostException e = assertThrows(RankLostException.class, () -> sync.average(buffer));
            assertTrue(
                e.getMessage().contains("rank 1 (thread=rank-1) did not join in time"),
                e.getMessage());
            assertTrue(e.getMessage().contains("allReduce(FLOAT32[10], AVERAGE)"), e.getMessage());
            RankLostException again =
                assertThrows(RankLostException.class, () -> sync.average(buffer));
            assertTrue(again.getMessage().contains("broken"), again.getMessage());
          }
          if (sync.rank() == 0) {
            Thread.sleep(500);
            done.countDown();
          }
        });
  }

  @Test
  void aRankThatLeavesIsNamed() {
    LocalRanks.run(
        3,
        sync -> {
          if (sync.rank() == 1) {
            sync.close();
            return;
          }
          RankLostException e = assertThrows(RankLostException.class, sync::barrier);
          assertTrue(e.getMessage().contains("rank 1 (thread=rank-1) has left"), e.getMessage());
        });
  }

  @Test
  void createOnARanksThreadJoinsTheRun() {
    AtomicInteger sum = new AtomicInteger();
    LocalRanks.run(
        3,
        sync -> {
          try (GradientSync own = GradientSync.create()) {
            assertEquals(3, own.size());
            assertEquals(sync.rank(), own.rank());
            own.barrier();
            sum.addAndGet(own.rank());
          }
        });
    assertEquals(3, sum.get());
  }

  @Test
  void optionsMayDifferByRank() {
    LocalRanks.run(
        3,
        b -> b.timeout(Duration.ofMinutes(1 + LocalWorld.current().orElseThrow().rank())),
        sync -> assertEquals(Duration.ofMinutes(1 + sync.rank()), sync.communicator().timeout()));
  }

  @Test
  void aSyncThatNotAllRanksCreate() {
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          if (sync.rank() == 0) {
            GradientSync.Builder options = GradientSync.builder().timeout(Duration.ofMillis(200));
            RankLostException late = assertThrows(RankLostException.class, options::create);
            assertTrue(late.getMessage().contains("rank 1 (thread=rank-1)"), late.getMessage());
            assertTrue(late.getMessage().contains("GradientSync.create()"), late.getMessage());
            RankLostException next =
                assertThrows(RankLostException.class, () -> GradientSync.create().close());
            assertTrue(
                next.getMessage().contains("broken by an earlier failure"), next.getMessage());
            over.countDown();
          }
          over.await();
          sync.barrier(); // ranks that have a sync go on
        });
  }

  @Test
  void createOnAnotherThreadIsAJobOfOneRank() {
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 2)) {
      assertEquals(1, sync.size());
      assertEquals(0, sync.rank());
      assertEquals("local", sync.launcher());
      assertEquals("local", sync.reducer());
      buffer.copyFrom(new float[] {1, 2});
      sync.average(buffer);
      float[] result = new float[2];
      buffer.copyTo(result);
      assertEquals(2, result[1]);
    }
  }

  @Test
  void reportsWhyOtherReducersWereNotChosen() {
    LocalRanks.run(
        2,
        sync ->
            assertEquals(
                Map.of(
                    "two-level-gpu",
                    "the gradients are not in GPU memory: device=host (rank 0)",
                    "shared",
                    "the ranks are threads of one JVM and share its memory anyway (rank 0)",
                    "two-level",
                    "the ranks are on one node (rank 0)"),
                sync.alternatives()));
  }

  @Test
  void reducersByName() {
    LocalRanks.run(2, b -> b.reducer("local"), sync -> assertEquals("local", sync.reducer()));
    LocalRanks.run(1, b -> b.reducer("LOCAL"), sync -> assertEquals("local", sync.reducer()));
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () -> LocalRanks.run(2, b -> b.reducer("warp"), sync -> {}));
    assertTrue(e.getMessage().contains("no such reducer: reducer=warp"), e.getMessage());
    assertTrue(
        e.getMessage().contains("known here: two-level-gpu, shared, two-level, local"),
        e.getMessage());
    UnavailableException device =
        assertThrows(
            UnavailableException.class,
            () -> LocalRanks.run(2, b -> b.device("abacus"), sync -> {}));
    assertTrue(device.getMessage().contains("no such device: device=abacus"), device.getMessage());
    assertFalse(device.getMessage().contains("it is in "), device.getMessage());
    UnavailableException kind =
        assertThrows(
            UnavailableException.class,
            () -> LocalRanks.run(1, b -> b.reducer("cuda"), sync -> {}));
    assertTrue(
        kind.getMessage().contains("reducer=cuda, rank=0; that is a device; known here: "),
        kind.getMessage());
    UnavailableException cuda =
        assertThrows(
            UnavailableException.class, () -> LocalRanks.run(1, b -> b.device("cuda"), sync -> {}));
    assertTrue(
        cuda.getMessage()
            .contains(
                "device=cuda, rank=0; it is in gradient-sync-cuda, which is not on the class path,"
                    + " or"),
        cuda.getMessage());
  }

  @Test
  void aDeviceThatOnlySomeRanksHaveIsTakenByNone() {
    System.setProperty(OddRanksDevice.PREFERRED, "true");
    try {
      List<String> log =
          Logged.lines(
              () -> LocalRanks.run(3, sync -> assertEquals("host memory", sync.device().name())));
      String why =
          "3 ranks (threads), host memory, reducer local, faster ones not available:"
              + " {odd-ranks=this rank";
      assertTrue(log.stream().anyMatch(line -> line.contains(why)), log::toString);
      String warning = "device odd-ranks is for no rank, though ranks [1] can use it: this rank is";
      assertEquals(1, log.stream().filter(line -> line.contains(warning)).count(), log::toString);
      UnavailableException e =
          assertThrows(
              UnavailableException.class,
              () -> LocalRanks.run(3, b -> b.device("odd-ranks"), sync -> {}));
      assertTrue(e.getMessage().contains("this rank is even (rank 0)"), e.getMessage());
    } finally {
      System.clearProperty(OddRanksDevice.PREFERRED);
    }
  }

  @Test
  void theChoiceIsOneShortLine() {
    List<String> log =
        Logged.lines(
            () -> LocalRanks.run(4, b -> b.wire(DataType.BFLOAT16), sync -> sync.barrier()));
    assertEquals(1, log.size(), log::toString);
    assertTrue(
        log.get(0).endsWith(" - 4 ranks (threads), host memory, reducer local, wire bfloat16"),
        log::toString);
    log = Logged.lines(() -> GradientSync.create().close());
    assertTrue(log.get(0).endsWith(" - 1 rank, host memory, reducer local"), log::toString);
  }

  @Test
  void gpuAndCpuAreDevicesToo() {
    LocalRanks.run(
        2,
        b -> b.device(LocalWorld.current().orElseThrow().rank() == 0 ? "CPU" : "host"),
        sync -> assertEquals("host", sync.device().kind()));
    UnavailableException e =
        assertThrows(
            UnavailableException.class, () -> LocalRanks.run(1, b -> b.device("gpu"), sync -> {}));
    assertTrue(e.getMessage().contains("device=cuda"), e.getMessage());
  }

  @Test
  void aRankThatHasFewerStepsIsToldOf() {
    LocalRanks.run(
        2,
        sync -> {
          float[] gradient = new float[3];
          sync.average(gradient);
          if (sync.rank() == 0) {
            RankLostException e =
                assertThrows(RankLostException.class, () -> sync.average(gradient));
            assertTrue(
                e.getMessage().endsWith("or build GradientBuckets with unevenSteps()"),
                e.getMessage());
          }
        });
    LocalRanks.run(
        2,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, List.of(new Parameter("w", DataType.FLOAT32, 3)))
                  .build()) {
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> {
                      if (sync.rank() == 0) {
                        buckets.ready(0);
                        buckets.finish();
                      } else {
                        sync.mean(1);
                      }
                    });
            assertTrue(e.getMessage().contains("with unevenSteps()"), e.getMessage());
          }
        });
  }

  @Test
  void theReducerOfAPropertyIsTakenAndTheBuilderWins() {
    System.setProperty("gradientsync.reducer", "warp");
    try {
      assertThrows(UnavailableException.class, () -> GradientSync.create().close());
      GradientSync.builder().reducer("local").create().close();
    } finally {
      System.clearProperty("gradientsync.reducer");
    }
  }

  @Test
  void ranksThatAskForDifferentThingsAllFail() {
    refuses((b, rank) -> rank == 0 ? b.reducer("local") : b, "reducer=local", "reducer=(any)");
    refuses(
        (b, rank) -> b.order(SumOrder.values()[rank]),
        ": order=",
        "order=ranks on ranks [",
        "order=any on ranks [");
    refuses((b, rank) -> b.requireFinite(rank == 0), "finite=true on ranks [", "finite=false on");
    refuses((b, rank) -> b.elastic(rank == 0), "elastic=true on ranks [", "elastic=false on");
  }

  private static void refuses(
      BiFunction<GradientSync.Builder, Integer, GradientSync.Builder> options, String... parts) {
    AtomicInteger next = new AtomicInteger();
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () -> LocalRanks.run(2, b -> options.apply(b, next.getAndIncrement()), sync -> {}));
    assertTrue(e.getMessage().contains("ask for different ones"), e.getMessage());
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  @Test
  void invalidTimeouts() {
    assertThrows(
        IllegalArgumentException.class, () -> GradientSync.builder().timeout(Duration.ZERO));
    System.setProperty("gradientsync.timeout", "soon");
    try {
      IllegalArgumentException e =
          assertThrows(IllegalArgumentException.class, () -> GradientSync.create().close());
      assertTrue(e.getMessage().contains("gradientsync.timeout=soon"), e.getMessage());
      System.setProperty("gradientsync.timeout", "90");
      try (GradientSync sync = GradientSync.create()) {
        assertEquals(Duration.ofSeconds(90), sync.communicator().timeout());
      }
    } finally {
      System.clearProperty("gradientsync.timeout");
    }
  }

  @Test
  void invalidNumbersOfRanks() {
    assertThrows(IllegalArgumentException.class, () -> LocalRanks.run(0, sync -> {}));
    assertThrows(IllegalArgumentException.class, () -> LocalRanks.run(-1, sync -> {}));
    assertThrows(IllegalArgumentException.class, () -> LocalRanks.run(257, sync -> {}));
    assertThrows(NullPointerException.class, () -> LocalRanks.run(1, null));
  }

  @Test
  void interruptingTheCallerEndsTheRunAndBlamesNoRank() throws Exception {
    String interrupted = "the thread that called LocalRanks.run was interrupted";
    String[] lost = new String[1];
    GradientSyncException e =
        runInterrupted(
            sync -> {
              if (sync.rank() == 1) {
                Thread.sleep(Long.MAX_VALUE);
              }
              lost[0] = assertThrows(RankLostException.class, sync::barrier).getMessage();
            });
    assertEquals(interrupted, e.getMessage());
    assertInstanceOf(InterruptedException.class, e.getCause());
    assertTrue(
        lost[0].startsWith("rank 1 (thread=rank-1) is lost: " + interrupted + ", rank=0"), lost[0]);
  }

  /** Ranks 0 and 1 do not wait for rank 3 itself. */
  @Test
  void aRankThatGivesUpEndsTheCallOfRanksThatWaitForOthers() {
    LocalRanks.run(
        4,
        builder -> builder.timeout(Duration.ofSeconds(30)),
        sync -> {
          if (sync.rank() == 3) {
            Thread.currentThread().interrupt();
          } else {
            Thread.sleep(300);
          }
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 70_001)) {
            String message =
                assertThrows(RankLostException.class, () -> sync.average(buffer)).getMessage();
            assertEquals(sync.rank() == 3, Thread.interrupted());
            assertFalse(message.contains("timed out"), message);
          }
        });
  }

  @Test
  void ranksThatFinishWhenTheCallerIsInterruptedHaveFinished() throws Exception {
    assertNull(
        runInterrupted(
            sync -> {
              while (!Thread.currentThread().isInterrupted()) {
                Thread.onSpinWait();
              }
            }));
  }

  /** Runs two ranks on a thread that is interrupted, and returns what it throws. */
  private static GradientSyncException runInterrupted(LocalRanks.RankTask task) throws Exception {
    CountDownLatch begun = new CountDownLatch(2);
    FutureTask<GradientSyncException> run =
        new FutureTask<>(
            () -> {
              GradientSyncException thrown = null;
              try {
                LocalRanks.run(
                    2,
                    sync -> {
                      begun.countDown();
                      task.run(sync);
                    });
              } catch (GradientSyncException e) {
                thrown = e;
              }
              assertTrue(Thread.interrupted());
              return thrown;
            });
    Thread caller = new Thread(run);
    caller.start();
    begun.await();
    caller.interrupt();
    return run.get();
  }

  @Test
  void aRankThatComesAfterTheTimeOutOfTheOthersThrows() {
    CountDownLatch others = new CountDownLatch(2);
    LocalRanks.run(
        3,
        builder -> builder.timeout(Duration.ofMillis(300)),
        sync -> {
          if (sync.rank() == 2) {
            others.await();
          }
          String text = assertThrows(RankLostException.class, sync::barrier).getMessage();
          others.countDown();
          assertTrue(text.contains("rank 2 (thread=rank-2) did not join in time"), text);
        });
  }

  @Test
  void aRankThatIgnoresInterruptsIsLeftBehindAndNamed() throws Exception {
    AtomicBoolean released = new AtomicBoolean();
    CompletableFuture<RuntimeException> nextCall = new CompletableFuture<>();
    LocalRun run =
        new LocalRun(
            3,
            builder -> builder.timeout(Duration.ofMillis(300)),
            sync -> {
              if (sync.rank() == 1) {
                loopUntil(released);
                nextCall.complete(assertThrows(RuntimeException.class, sync::barrier));
              }
              sync.barrier();
            },
            Duration.ofMillis(100));
    RankLostException lost = assertThrows(RankLostException.class, run::run);
    released.set(true);
    assertTrue(lost.getMessage().contains("rank 1 (thread=rank-1)"), lost.getMessage());
    assertEquals(1, lost.getSuppressed().length);
    Throwable behind = lost.getSuppressed()[0];
    assertTrue(behind.getMessage().contains("thread=rank-1"), behind.getMessage());
    assertTrue(
        List.of(behind.getStackTrace()).toString().contains("loopUntil"),
        List.of(behind.getStackTrace()).toString());
    assertInstanceOf(RankLostException.class, nextCall.get());
  }

  /** Ignores interrupts. */
  private static void loopUntil(AtomicBoolean released) {
    while (!released.get()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void twoThreadsOfARankTakeTurns() {
    LocalRanks.run(
        2,
        sync -> {
          try (DeviceBuffer a = sync.allocate(DataType.INT64, 1000);
              DeviceBuffer b = sync.allocate(DataType.INT64, 1000)) {
            // Both threads make the same calls, so the ranks match in any order.
            Thread other =
                new Thread(
                    () -> {
                      for (int i = 0; i < 200; i++) {
                        sync.allReduce(a, ReduceOp.MAX);
                      }
                    });
            other.start();
            for (int i = 0; i < 200; i++) {
              sync.allReduce(b, ReduceOp.MAX);
            }
            other.join();
          }
        });
  }

  @Test
  void theFirstExceptionIsRethrownAsItIs() {
    GradientSyncException mine = new GradientSyncException("mine, rank=1");
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    2,
                    sync -> {
                      if (sync.rank() == 1) {
                        throw mine;
                      }
                      sync.barrier();
                    }));
    assertSame(mine, e);
  }

  @Test
  void theRankThatHasMostCommunicatorsIsNamed() {
    LocalRanks.run(
        2,
        sync -> {
          List<Communicator> open = new ArrayList<>();
          String text =
              assertThrows(
                      GradientSyncException.class,
                      () -> {
                        while (true) {
                          Communicator part =
                              sync.communicator().split(sync.rank() == 0 ? 0 : -1, 0);
                          if (part != null) {
                            open.add(part);
                          }
                        }
                      })
                  .getMessage();
          open.forEach(Communicator::close);
          String here = sync.rank() == 0 ? "1024" : "\\d{1,2}";
          assertTrue(
              text.matches(
                  "too many communicators are open: rank="
                      + sync.rank()
                      + (", open here=" + here + ", most=1024 on rank 0\\b.*, limit=1024 .*")),
              text);
        });
  }

  /** Ranks allocate 2 KB or so for each pair of them, and more while they wait for long. */
  @Test
  void ranksAllocateLittleForEachOtherRank() {
    allocated(2); // loads classes
    long few = leastAllocated(64);
    long many = leastAllocated(256);
    long forPairs = many - 4 * few;
    long pairs = 256 * 256 - 4 * 64 * 64;
    assertTrue(forPairs < 4_000 * pairs, "64 ranks: " + few + ", 256 ranks: " + many);
  }

  /** Of three runs: on a busy machine ranks wait for long, and long waits allocate. */
  private static long leastAllocated(int ranks) {
    return LongStream.range(0, 3).map(run -> allocated(ranks)).min().orElseThrow();
  }

  /** The bytes that the threads of all ranks allocate until their first average ends. */
  private static long allocated(int ranks) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    AtomicLong bytes = new AtomicLong();
    LocalRanks.run(
        ranks,
        b -> b.set("dev.late", "600"), // a warning on a slow machine would name all ranks
        sync -> {
          sync.average(sync.allocate(DataType.FLOAT32, 1000));
          bytes.addAndGet(threads.getThreadAllocatedBytes(Thread.currentThread().getId()));
        });
    return bytes.get();
  }
}

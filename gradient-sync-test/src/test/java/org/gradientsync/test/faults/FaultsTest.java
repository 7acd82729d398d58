package org.gradientsync.test.faults;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what each fault does to its rank and to the others. */
@Timeout(120)
class FaultsTest {
  private static final Duration SHORT = Duration.ofMillis(300);
  private static final float[] OWN = {1, 2, 3};

  @RegisterExtension final Faults faults = new Faults();

  /** Runs on each rank, with a buffer that holds {1, 2, 3}. */
  private interface Body {
    void run(GradientSync sync, DeviceBuffer buffer) throws Exception;
  }

  private void run(int ranks, Body body) {
    run(ranks, Duration.ofMinutes(1), body);
  }

  private void run(int ranks, Duration timeout, Body body) {
    LocalRanks.run(
        ranks,
        builder -> faults.install(builder.timeout(timeout)),
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 3)) {
            buffer.copyFrom(OWN);
            body.run(sync, buffer);
          }
        });
  }

  private static float[] contents(DeviceBuffer buffer) {
    float[] values = new float[(int) buffer.count()];
    buffer.copyTo(values);
    return values;
  }

  @Test
  void withoutFaultsAllIsAsUsual() {
    run(
        2,
        (sync, buffer) -> {
          sync.register(buffer);
          sync.allReduce(buffer, ReduceOp.SUM);
          assertArrayEquals(new float[] {2, 4, 6}, contents(buffer));
          buffer.copyFrom(new float[] {sync.rank(), 5, 5});
          sync.broadcast(buffer, 1);
          float[] values = new float[3];
          buffer.copyTo(values);
          assertArrayEquals(new float[] {1, 5, 5}, values);
          try (DeviceBuffer part = buffer.slice(1, 2)) {
            part.fillZero();
          }
          assertArrayEquals(new float[] {1, 0, 0}, contents(buffer));
          sync.barrier();
          buffer.close();
          assertThrows(IllegalStateException.class, () -> sync.average(buffer));
        });
  }

  @Test
  void aLateRankIsWaitedFor() {
    faults.onRank(1).atCall(2).delay(SHORT);
    run(
        2,
        (sync, buffer) -> {
          sync.average(buffer);
          sync.allReduce(buffer, ReduceOp.SUM);
          assertArrayEquals(new float[] {2, 4, 6}, contents(buffer));
        });
  }

  @Test
  void aRankThatDoesNotComeIsNamed() {
    faults.onRank(1).atCall(2).drop();
    CountDownLatch lost = new CountDownLatch(2);
    run(
        3,
        SHORT,
        (sync, buffer) -> {
          sync.average(buffer);
          if (sync.rank() == 1) {
            sync.average(buffer); // dropped
            assertArrayEquals(OWN, contents(buffer));
            lost.await();
            return;
          }
          RankLostException e = assertThrows(RankLostException.class, () -> sync.average(buffer));
          assertTrue(
              e.getMessage().contains("rank 1 (thread=rank-1) did not join in time"),
              e.getMessage());
          lost.countDown();
        });
  }

  @Test
  void whoAsksForAnotherCountIsInTheTable() {
    faults.onRank(1).atCall(1).mismatch();
    faults.onRank(0).atCall(2).mismatch();
    run(
        2,
        (sync, buffer) -> {
          MismatchedCallException e =
              assertThrows(MismatchedCallException.class, () -> sync.average(buffer));
          assertTrue(e.getMessage().contains("rank 0: allReduce(FLOAT32[3]"), e.getMessage());
          assertTrue(e.getMessage().contains("rank 1: allReduce(FLOAT32[2]"), e.getMessage());
          e = assertThrows(MismatchedCallException.class, () -> sync.broadcast(buffer, 1));
          assertTrue(e.getMessage().contains("rank 0: broadcast(FLOAT32[2]"), e.getMessage());
          assertArrayEquals(OWN, contents(buffer));
          sync.allReduce(buffer, ReduceOp.SUM); // both ranks can go on
          assertArrayEquals(new float[] {2, 4, 6}, contents(buffer));
        });
  }

  @Test
  void anEmptyBufferCannotAskForLess() {
    faults.onRank(0).atCall(1).mismatch();
    try (GradientSync sync = faults.install(GradientSync.builder()).create();
        DeviceBuffer empty = sync.allocate(DataType.INT32, 0)) {
      IllegalStateException e =
          assertThrows(IllegalStateException.class, () -> sync.broadcast(empty, 0));
      assertTrue(e.getMessage().contains("plan the mismatch at another call"), e.getMessage());
    }
  }

  @Test
  void aRankThatDiesIsNamed() {
    faults.onRank(1).atCall(3).die();
    Queue<Throwable> seen = new ConcurrentLinkedQueue<>();
    CyclicBarrier both = new CyclicBarrier(2); // no rank dies while the other is in the call before
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                run(
                    2,
                    (sync, buffer) -> {
                      sync.average(buffer);
                      sync.average(buffer);
                      both.await();
                      try {
                        sync.average(buffer);
                      } catch (Throwable t) {
                        seen.add(t);
                        throw t;
                      }
                    }));
    assertInstanceOf(RankDiedError.class, e.getCause());
    assertTrue(e.getMessage().contains("rank 1 died, as a test has planned"), e.getMessage());
    Throwable other = seen.stream().filter(RankLostException.class::isInstance).findAny().get();
    assertTrue(
        other.getMessage().contains("rank 1") || other.getMessage().contains("waitingFor=1"),
        other.getMessage());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "all-gather",
        "gather",
        "scatter",
        "counts",
        "background",
        "arrays",
        "rows",
        "hook"
      })
  void aRankThatDiesInAnotherCallIsNamed(String call) {
    faults.onRank(1).atCall(1).die();
    Queue<Throwable> seen = new ConcurrentLinkedQueue<>();
    CyclicBarrier both = new CyclicBarrier(2); // no rank dies while the other is being created
    assertThrows(
        GradientSyncException.class,
        () ->
            run(
                2,
                (sync, buffer) -> {
                  both.await();
                  try {
                    make(call, sync, buffer);
                  } catch (Throwable t) {
                    seen.add(t);
                    throw t;
                  }
                }));
    Throwable other = seen.stream().filter(RankLostException.class::isInstance).findAny().get();
    assertTrue(other.getMessage().contains("rank 1"), other.getMessage());
  }

  private static void make(String call, GradientSync sync, DeviceBuffer buffer) {
    long[] own = {1, 2};
    long[] others = {sync.rank() + 1, sync.rank() + 1};
    switch (call) {
      case "all-gather" -> {
        try (DeviceBuffer all = sync.allocate(DataType.FLOAT32, 6)) {
          sync.allGather(buffer, all, new long[] {3, 3});
        }
      }
      case "gather" -> {
        try (DeviceBuffer all = sync.allocate(DataType.FLOAT32, 6)) {
          sync.gather(buffer, sync.rank() == 0 ? all : null, new long[] {3, 3}, 0);
        }
      }
      case "scatter" -> {
        try (DeviceBuffer part = sync.allocate(DataType.FLOAT32, own[sync.rank()])) {
          sync.reduceScatter(buffer, part, own, ReduceOp.SUM);
        }
      }
      case "hook" -> {
        List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 3));
        try (GradientBuckets buckets =
            GradientBuckets.builder(sync, model)
                .hook(bucket -> bucket.sync().average(bucket.gradients()))
                .build()) {
          buckets.ready(0);
          buckets.finish();
        }
      }
      case "counts" -> {
        try (DeviceBuffer received = sync.allocate(DataType.FLOAT32, others[0] + others[1])) {
          sync.allToAll(buffer, own, received, others);
        }
      }
      case "background" -> sync.averageAsync(buffer).await();
      case "arrays" -> sync.average(List.of(OWN.clone(), new float[5]));
      default -> sync.average(new SparseRows(9, 3, new long[] {4}, OWN));
    }
  }

  @Test
  void aCallThatFailsThrowsThatVeryException() {
    IllegalArgumentException planned = new IllegalArgumentException("so be it");
    faults.onRank(0).atCall(1).fail(planned);
    faults.onRank(0).atCall(2).deviceError("ECC");
    run(
        1,
        (sync, buffer) -> {
          assertSame(
              planned,
              assertThrows(IllegalArgumentException.class, () -> sync.broadcast(buffer, 0)));
          GradientSyncException e =
              assertThrows(GradientSyncException.class, () -> sync.average(buffer));
          assertEquals("device failed: error=ECC, rank=0; planned by a test", e.getMessage());
          sync.average(buffer);
        });
  }

  @Test
  void theOthersOfARankThatFailsAreTold() {
    faults.onRank(0).atCall(1).fail(new IllegalArgumentException("so be it"));
    run(
        2,
        (sync, buffer) -> {
          if (sync.rank() == 0) {
            assertThrows(IllegalArgumentException.class, () -> sync.average(buffer));
            sync.close(); // as try-with-resources does
            return;
          }
          RankLostException e = assertThrows(RankLostException.class, () -> sync.average(buffer));
          assertTrue(e.getMessage().contains("rank 0 (thread=rank-0) has left"), e.getMessage());
        });
  }

  @Test
  void copiesAreCountedForThemselves() {
    faults.onRank(0).atCopy(2).deviceError("ECC");
    faults.onRank(0).atCopy(3).delay(Duration.ofMillis(1));
    run(
        1,
        (sync, buffer) -> { // the buffer was copied to once before
          sync.average(buffer);
          sync.average(buffer);
          float[] values = new float[3];
          assertThrows(GradientSyncException.class, () -> buffer.copyTo(values));
          assertArrayEquals(new float[3], values);
          buffer.copyTo(values);
          assertArrayEquals(OWN, values);
        });
  }

  @Test
  void lateAndThenSomethingElse() {
    faults.onRank(0).atCall(1).delay(Duration.ofMillis(1));
    faults.onRank(0).atCall(1).drop();
    faults.onRank(0).atCall(1).delay(Duration.ofMillis(1));
    run(
        1,
        (sync, buffer) -> {
          buffer.close();
          sync.average(buffer); // throws if it is not dropped
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void averagesOfBucketsAreCalls(boolean overlap) {
    faults.onRank(1).atCall(2).deviceError("ECC");
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    2,
                    faults::install,
                    sync -> {
                      try (GradientBuckets buckets = twoBuckets(sync, overlap)) {
                        assertEquals(2, buckets.bucketCount());
                        buckets.ready(1);
                        buckets.ready(0);
                        buckets.finish();
                      }
                    }));
    assertTrue(
        e.getMessage().contains("ECC")
            || e.getMessage().contains("rank 1 (thread=rank-1) has left"),
        e.getMessage());
  }

  private static GradientBuckets twoBuckets(GradientSync sync, boolean overlap) {
    return GradientBuckets.builder(
            sync,
            List.of(
                new Parameter("a", DataType.FLOAT32, 10), new Parameter("b", DataType.FLOAT32, 10)))
        .firstBucketBytes(1)
        .bucketBytes(1)
        .overlap(overlap)
        .build();
  }

  /** Trains without knowing about faults. Each step has three calls and four copies. */
  private static void train(GradientSync sync, boolean overlap, IntConsumer doing) {
    try (GradientBuckets buckets = twoBuckets(sync, overlap);
        DeviceBuffer a = sync.allocate(DataType.FLOAT32, 10);
        DeviceBuffer b = sync.allocate(DataType.FLOAT32, 10)) {
      doing.accept(0);
      buckets.broadcast(List.of(a, b), 0); // counts as one call
      for (int step = 1; step <= 2; step++) {
        doing.accept(step);
        for (int parameter = 1; parameter >= 0; parameter--) {
          buckets.gradient(parameter).copyFrom(new float[10]);
          buckets.ready(parameter);
        }
        buckets.finish();
        for (int parameter = 1; parameter >= 0; parameter--) {
          buckets.gradient(parameter).copyTo(new float[10]);
        }
        sync.communicator().allReduce(FloatBuffer.allocate(1), ReduceOp.AVERAGE); // the loss
        if (step == 1) {
          buckets.rebuild();
        }
      }
    }
  }

  /** Returns which step rank 1 was in when the planned fault happened, 0 before the first. */
  private int failedAt(boolean overlap) {
    AtomicInteger last = new AtomicInteger();
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    2,
                    faults::install,
                    sync -> train(sync, overlap, sync.rank() == 1 ? last::set : doing -> {})));
    assertTrue(
        e.getMessage().contains("ECC")
            || e.getMessage().contains("rank 1 (thread=rank-1) has left"),
        e.getMessage());
    return last.get();
  }

  @ParameterizedTest
  @CsvSource({"1, 0", "2, 1", "3, 1", "4, 1", "5, 2", "6, 2", "7, 2"})
  void onlyTheCallsOfTheProgramCount(int call, int step) {
    faults.onRank(1).atCall(call).deviceError("ECC");
    assertEquals(step, failedAt(call % 2 == 0));
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "4, 1", "5, 2", "8, 2"})
  void copiesThroughViewsOfBucketsCount(int copy, int step) {
    faults.onRank(1).atCopy(copy).deviceError("ECC");
    assertEquals(step, failedAt(true));
  }

  @Test
  void theLibrarysOwnCallsAndCopiesDoNotCount() {
    faults.onRank(0).atCall(8).drop();
    faults.onRank(0).atCopy(9).delay(Duration.ZERO);
    LocalRanks.run(2, faults::install, sync -> train(sync, true, doing -> {}));
    AssertionError e = assertThrows(AssertionError.class, faults::requireReached);
    assertTrue(e.getMessage().contains("(the rank made 7 calls and 8 copies)"), e.getMessage());
  }

  @Test
  void theFlagOfUnevenStepsIsNoCopyOfTheProgram() {
    faults.onRank(0).atCopy(1).delay(Duration.ZERO);
    faults.onRank(0).atCall(3).drop();
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, List.of(new Parameter("a", DataType.FLOAT32, 10)))
                  .unevenSteps()
                  .build()) {
            if (sync.rank() == 1) {
              buckets.ready(0);
              buckets.finish();
            }
            buckets.join(() -> {});
          }
        });
    AssertionError e = assertThrows(AssertionError.class, faults::requireReached);
    assertTrue(e.getMessage().contains("(the rank made 2 calls and 0 copies)"), e.getMessage());
  }

  @Test
  void aCallInTheMiddleOfAStepComesAfterTheBucketsBeforeIt() {
    faults.onRank(0).atCall(2).deviceError("ECC");
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          try (GradientBuckets buckets = twoBuckets(sync, true)) {
            buckets.ready(1);
            if (sync.rank() == 0) {
              assertThrows(GradientSyncException.class, sync::barrier);
            }
            sync.barrier();
            buckets.ready(0);
            buckets.finish();
          }
        });
  }

  @Test
  void aBroadcastOfBucketsIsOneCall() {
    faults.onRank(0).atCall(1).drop();
    faults.onRank(1).atCall(1).drop();
    faults.onRank(0).atCall(2).mismatch();
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          try (GradientBuckets buckets = twoBuckets(sync, true);
              DeviceBuffer a = sync.allocate(DataType.FLOAT32, 10);
              DeviceBuffer b = sync.allocate(DataType.FLOAT32, 10)) {
            buckets.broadcast(List.of(a, b), 0);
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class, () -> buckets.broadcast(List.of(a, b), 0));
            assertTrue(e.getMessage().contains("rank 0: broadcast(FLOAT32[9]"), e.getMessage());
            buckets.broadcast(List.of(a, b), 0);
          }
        });
  }

  @Test
  void copiesOfWrappedMemoryAndSlicesCount() {
    faults.onRank(0).atCopy(2).deviceError("ECC");
    faults.onRank(0).atCopy(4).deviceError("ECC");
    run(
        1,
        (sync, buffer) -> { // the buffer was copied to once before
          ByteBuffer memory = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
          try (DeviceBuffer wrapped = sync.wrap(DataType.FLOAT32, memory)) {
            assertThrows(
                GradientSyncException.class, () -> wrapped.copyFrom(FloatBuffer.allocate(2)));
            wrapped.slice(0, 1).copyFrom(new float[] {7});
            assertThrows(GradientSyncException.class, () -> buffer.slice(1, 1).copyTo(OWN.clone()));
          }
          assertEquals(7, memory.getFloat(0));
        });
  }

  /** Returns each collective of a communicator, for two ranks. */
  private static List<Consumer<Communicator>> collectives() {
    return List.of(
        Communicator::barrier,
        c -> c.allReduce(IntBuffer.allocate(4), ReduceOp.SUM),
        c ->
            c.allReduce(
                ByteBuffer.allocate(16).order(ByteOrder.nativeOrder()),
                DataType.FLOAT64,
                ReduceOp.SUM),
        c -> c.broadcast(FloatBuffer.allocate(4), 1),
        c -> c.allGather(IntBuffer.allocate(4), IntBuffer.allocate(8)),
        c ->
            c.reduceScatter(
                IntBuffer.allocate(8), IntBuffer.allocate(4), DataType.INT32, ReduceOp.MAX),
        c -> c.gather(IntBuffer.allocate(4), c.rank() == 0 ? IntBuffer.allocate(8) : null, 0),
        c -> c.gather(IntBuffer.allocate(4), c.rank() == 1 ? IntBuffer.allocate(8) : null, 1),
        c -> c.scatter(c.rank() == 0 ? IntBuffer.allocate(8) : null, IntBuffer.allocate(4), 0),
        c -> c.scatter(c.rank() == 1 ? IntBuffer.allocate(8) : null, IntBuffer.allocate(4), 1));
  }

  @Test
  void collectivesInPlaceMismatch() {
    long[] counts = {3, 3, 3};
    for (int call = 1; call <= 16; call += 2) {
      faults.onRank(2).atCall(call).mismatch();
    }
    LocalRanks.run(
        3,
        faults::install,
        sync -> {
          try (DeviceBuffer all = sync.allocate(DataType.FLOAT32, 9);
              DeviceBuffer own = all.slice(3L * sync.rank(), 3)) {
            List<Runnable> calls =
                List.of(
                    () -> sync.reduceScatter(all, own, ReduceOp.AVERAGE),
                    () -> sync.allGather(own, all),
                    () -> sync.gather(own, sync.rank() == 2 ? all : null, 2),
                    () -> sync.scatter(sync.rank() == 2 ? all : null, own, 2),
                    () -> sync.allGather(own, all, counts),
                    () -> sync.reduceScatter(all, own, counts, ReduceOp.AVERAGE),
                    () -> sync.gather(own, sync.rank() == 2 ? all : null, counts, 2),
                    () -> sync.averageAsync(own).await());
            for (Runnable call : calls) {
              assertThrows(MismatchedCallException.class, call::run);
              call.run();
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2}) // the gradients, the weights
  void shardedBucketsMismatch(int call) {
    faults.onRank(1).atCall(call).mismatch();
    run(
        2,
        (sync, buffer) -> {
          List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 100));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).sharded().build()) {
            buckets.ready(0);
            assertThrows(
                MismatchedCallException.class, () -> buckets.finish((gradient, weight, k) -> {}));
          }
        });
  }

  @Test
  void collectivesOfACommunicatorMismatchEachOnItsOwn() {
    int count = collectives().size();
    for (int call = 1; call <= 2 * count; call += 2) {
      faults.onRank(1).atCall(call).mismatch();
    }
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          Communicator c = sync.communicator();
          for (Consumer<Communicator> collective : collectives()) {
            assertThrows(MismatchedCallException.class, () -> collective.accept(c));
            collective.accept(c);
          }
        });
  }

  @Test
  void collectivesOfACommunicatorAreDropped() {
    int count = collectives().size();
    for (int call = 1; call <= count; call++) {
      faults.onRank(0).atCall(call).drop();
      faults.onRank(1).atCall(call).drop();
    }
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          Communicator c = sync.communicator();
          collectives().forEach(collective -> collective.accept(c));
          int[] sum = {1};
          c.allReduce(IntBuffer.wrap(sum), ReduceOp.SUM); // the first call that is not dropped
          assertEquals(2, sum[0]);
        });
  }

  @Test
  void partsOfACommunicatorAreCountedWithIt() {
    faults.onRank(1).atCall(2).deviceError("ECC");
    LocalRanks.run(
        2,
        faults::install,
        sync -> {
          Communicator c = sync.communicator();
          assertEquals(1, c.nodeCount());
          assertEquals(2, c.localSize());
          assertEquals(c.rank(), c.localRank());
          c.barrier();
          try (Communicator alone = c.split(c.rank(), 0)) {
            assertEquals(0, alone.rank());
            if (c.rank() == 1) {
              assertThrows(GradientSyncException.class, alone::barrier);
            }
          }
          int[] received = new int[1];
          int other = 1 - c.rank();
          c.sendReceive(
              IntBuffer.wrap(new int[] {c.rank()}), other, IntBuffer.wrap(received), other, 0);
          assertEquals(other, received[0]);
        });
  }

  @Test
  void aFaultThatIsNotReachedIsNamed() {
    Faults own = new Faults();
    own.onRank(0).atCall(2).drop();
    own.onRank(3).atCopy(1).delay(SHORT);
    try (GradientSync sync = own.install(GradientSync.builder()).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1)) {
      sync.average(buffer);
    }
    AssertionError e = assertThrows(AssertionError.class, own::requireReached);
    assertEquals(
        "planned faults were never reached: onRank(0).atCall(2).drop() (the rank made 1 calls and 0"
            + " copies), onRank(3).atCopy(1).delay(PT0.3S) (no sync of that rank has these faults)",
        e.getMessage());
    assertDoesNotThrow(own::requireReached); // the plan has been cleared
  }

  @Test
  void numbersAreChecked() {
    assertThrows(IllegalArgumentException.class, () -> faults.onRank(-1));
    assertThrows(IllegalArgumentException.class, () -> faults.onRank(0).atCall(0));
    assertThrows(IllegalArgumentException.class, () -> faults.onRank(0).atCopy(0));
    Faults.AtCopy first = faults.onRank(0).atCopy(1);
    assertThrows(IllegalArgumentException.class, () -> first.delay(Duration.ofMillis(-1)));
  }
}

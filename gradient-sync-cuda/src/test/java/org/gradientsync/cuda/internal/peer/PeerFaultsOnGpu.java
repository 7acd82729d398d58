package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests calls of {@code peer} that cannot meet, because some ranks wait on the host and others for
 * their GPU. The time-out is longer than the test, so it cannot end these waits.
 */
@Timeout(60)
class PeerFaultsOnGpu {
  private static final int COUNT = 100_003;

  private final GpuRunner runner = new GpuRunner(PeerReducer.NAME);

  static IntStream sizes() {
    return Arrays.stream(new GpuRunner(PeerReducer.NAME).sizes()).filter(n -> n > 1);
  }

  /** What the last rank does while the others reduce. */
  private interface Odd {
    void call(GradientSync sync, DeviceBuffer known, DeviceBuffer fresh);
  }

  private void mismatch(int ranks, String expected, Odd odd) {
    runner.run(
        ranks,
        b -> b.timeout(Duration.ofMinutes(10)),
        sync -> {
          DeviceBuffer known = sync.allocate(DataType.FLOAT32, COUNT).named("known");
          DeviceBuffer fresh = sync.allocate(DataType.FLOAT32, 11).named("fresh");
          float[] ones = new float[COUNT];
          Arrays.fill(ones, 1);
          known.copyFrom(ones);
          sync.average(known);
          known.copyTo(new float[COUNT]);
          MismatchedCallException e =
              assertThrows(
                  MismatchedCallException.class,
                  () -> {
                    if (sync.rank() == ranks - 1) {
                      odd.call(sync, known, fresh);
                    } else {
                      sync.allReduce(known, ReduceOp.SUM);
                    }
                    known.copyTo(new float[COUNT]);
                  });
          String message = e.getMessage();
          assertTrue(message.contains("rank " + (ranks - 1) + ": "), message);
          assertTrue(message.contains(expected), message);
          assertThrows(GradientSyncException.class, () -> sync.average(known));
          float[] after = new float[COUNT];
          known.copyTo(after); // the GPU is free
          for (float element : after) {
            assertEquals(1, element);
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void aBarrierAgainstAnAverage(int ranks) {
    mismatch(ranks, "waits on the host in barrier()", (sync, known, fresh) -> sync.barrier());
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void aBarrierAgainstAReplayOfAGraph(int ranks) {
    runner.run(
        ranks,
        b -> b.timeout(Duration.ofMinutes(10)),
        sync -> {
          CudaBuffer known = (CudaBuffer) sync.allocate(DataType.FLOAT32, COUNT).named("known");
          sync.register(known);
          known.stream().beginCapture();
          sync.average(known);
          sync.allReduce(known, ReduceOp.SUM);
          try (CudaGraph graph = known.stream().endCapture()) {
            sync.barrier(); // on a shared GPU, graph creation may wait for another rank's kernel
            for (int i = 0; i < 3; i++) {
              graph.launch(known.stream());
            }
            known.copyTo(new float[COUNT]);
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> {
                      if (sync.rank() == ranks - 1) {
                        sync.barrier();
                      } else {
                        graph.launch(known.stream());
                      }
                      known.copyTo(new float[COUNT]);
                    });
            assertTrue(e.getMessage().contains("waits on the host in barrier()"), e::getMessage);
            assertTrue(e.getMessage().contains("enqueued=6"), e::getMessage);
            assertThrows(GradientSyncException.class, () -> graph.launch(known.stream()));
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void aFirstCallAgainstAKnownOne(int ranks) {
    mismatch(
        ranks,
        "waits on the host in allReduce(FLOAT32[11] \"fresh\", AVERAGE)",
        (sync, known, fresh) -> sync.average(fresh));
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void aBroadcastAgainstAnAverage(int ranks) {
    mismatch(
        ranks,
        "waits on the host in broadcast(FLOAT32[100003] \"known\", root=0)",
        (sync, known, fresh) -> sync.broadcast(known, 0));
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void theSameCallsInAnotherOrder(int ranks) {
    runner.run(
        ranks,
        b -> b.timeout(Duration.ofMinutes(10)),
        sync -> {
          DeviceBuffer known = sync.allocate(DataType.FLOAT32, COUNT);
          sync.average(known);
          boolean odd = sync.rank() == ranks - 1;
          MismatchedCallException e =
              assertThrows(
                  MismatchedCallException.class,
                  () -> {
                    if (!odd) {
                      sync.average(known);
                    }
                    sync.barrier();
                  });
          assertTrue(e.getMessage().contains("barrier()"), e.getMessage());
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void anInterruptEndsAWaitForTheGpu(int ranks) {
    runner.run(
        ranks,
        b -> b.timeout(Duration.ofMinutes(10)),
        sync -> {
          DeviceBuffer known = sync.allocate(DataType.FLOAT32, COUNT);
          sync.average(known);
          known.copyTo(new float[COUNT]);
          sync.barrier();
          if (sync.rank() == ranks - 1) {
            Thread.sleep(3000); // as if in user code
            assertThrows(
                RankLostException.class,
                () -> {
                  // The first call may succeed with what the others sent before they gave up.
                  sync.average(known);
                  known.copyTo(new float[COUNT]);
                  sync.average(known);
                  known.copyTo(new float[COUNT]);
                });
            return;
          }
          Thread waiting = Thread.currentThread();
          Thread other =
              new Thread(
                  () -> {
                    try {
                      Thread.sleep(500);
                    } catch (InterruptedException e) {
                      return;
                    }
                    waiting.interrupt();
                  });
          other.start();
          sync.average(known);
          RankLostException e =
              assertThrows(RankLostException.class, () -> known.copyTo(new float[COUNT]));
          boolean interrupted = Thread.interrupted();
          assertTrue(
              interrupted && e.getMessage().contains("interrupted while waiting for the GPU")
                  || e.getMessage().contains("gave up"),
              e.getMessage());
          other.join();
        });
  }

  /** What a rank does whose kernel has failed, and which has not waited through the library. */
  private interface Next {
    void call(GradientSync sync, GradientBuckets buckets, CudaBuffer known);
  }

  /**
   * Lets a kernel fail: the last rank makes another call than the others, or none. Then the GPU is
   * awaited as a framework does that has a stream of its own.
   */
  private <E extends GradientSyncException> void withoutWaits(
      int ranks, boolean mismatch, Class<E> expected, Next next) {
    runner.run(
        ranks,
        b -> b,
        outer -> {
          GradientSync sync =
              GradientSync.builder()
                  .device("cuda")
                  .reducer(PeerReducer.NAME)
                  .timeout(Duration.ofSeconds(mismatch ? 600 : 2))
                  .create();
          List<Parameter> model =
              List.of(
                  new Parameter("a", DataType.FLOAT32, 10),
                  new Parameter("b", DataType.FLOAT32, 10));
          GradientBuckets buckets = GradientBuckets.builder(sync, model).build();
          CudaBuffer known = (CudaBuffer) sync.allocate(DataType.FLOAT32, COUNT);
          sync.register(known);
          boolean last = sync.rank() == ranks - 1;
          if (!last || mismatch) {
            sync.allReduce(known, last ? ReduceOp.MAX : ReduceOp.SUM);
            DriverAccess.gpu(known.stream().device())
                .api()
                .awaitStream(DriverAccess.stream(known.stream()).handle());
            assertThrows(expected, () -> next.call(sync, buckets, known));
          }
          outer.barrier();
          buckets.close();
          sync.close(); // throws nothing that has been thrown before
          known.close();
        });
  }

  static Stream<Arguments> sizesAndFailures() {
    return sizes()
        .boxed()
        .flatMap(
            n ->
                Stream.of(
                    Arguments.of(n, true, MismatchedCallException.class),
                    Arguments.of(n, false, RankLostException.class)));
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndFailures")
  <E extends GradientSyncException> void theNextAverageThrows(
      int ranks, boolean mismatch, Class<E> expected) {
    withoutWaits(ranks, mismatch, expected, (sync, buckets, known) -> sync.average(known));
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndFailures")
  <E extends GradientSyncException> void readyThrowsAlthoughItStartsNoAverage(
      int ranks, boolean mismatch, Class<E> expected) {
    withoutWaits(ranks, mismatch, expected, (sync, buckets, known) -> buckets.ready(1));
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndFailures")
  <E extends GradientSyncException> void finishThrows(
      int ranks, boolean mismatch, Class<E> expected) {
    withoutWaits(ranks, mismatch, expected, (sync, buckets, known) -> buckets.finish());
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndFailures")
  <E extends GradientSyncException> void closeThrowsIfThereIsNoOtherCall(
      int ranks, boolean mismatch, Class<E> expected) {
    withoutWaits(
        ranks,
        mismatch,
        expected,
        (sync, buckets, known) -> {
          buckets.close();
          sync.close();
        });
  }
}

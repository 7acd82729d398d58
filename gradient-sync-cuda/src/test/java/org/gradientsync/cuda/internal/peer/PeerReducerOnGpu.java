package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.cuda.TestDevices;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.Numbers;
import org.gradientsync.test.contract.RankRunner;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests what {@code peer} promises beyond the reducer contract. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class PeerReducerOnGpu {
  private static final String[] ALGORITHMS = {"one_shot", "two_shot", "stream"};
  private static final UnaryOperator<GradientSync.Builder> DEFAULTS = b -> b;
  private final GpuRunner gpus = new GpuRunner(PeerReducer.NAME);

  /** A short time-out, so that no rank waits long for one whose test has failed. */
  private final RankRunner runner =
      new RankRunner() {
        @Override
        public int[] sizes() {
          return gpus.sizes();
        }

        @Override
        public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
          gpus.run(ranks, b -> options.apply(b.timeout(Duration.ofSeconds(20))), task);
        }
      };

  Stream<Integer> sizes() {
    return Arrays.stream(runner.sizes()).filter(n -> n > 1).boxed();
  }

  Stream<Arguments> sizesAndAlgorithms() {
    return sizes()
        .flatMap(n -> Arrays.stream(ALGORITHMS).map(algorithm -> Arguments.of(n, algorithm)));
  }

  Stream<Arguments> sizesWaysAndTypes() {
    return sizesAndAlgorithms()
        .flatMap(
            a ->
                Arrays.stream(DataType.values()).map(t -> Arguments.of(a.get()[0], a.get()[1], t)));
  }

  private static UnaryOperator<GradientSync.Builder> algorithm(String algorithm) {
    return b -> b.set("dev.peer.algorithm", algorithm);
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesWaysAndTypes")
  void everyAlgorithmGivesThePromisedBits(int ranks, String algorithm, DataType type) {
    runner.run(
        ranks,
        algorithm(algorithm),
        sync -> {
          for (ReduceOp op : ReduceOp.values()) {
            if (op == ReduceOp.AVERAGE && !type.isFloatingPoint()) {
              continue;
            }
            for (int count : new int[] {1, 7, 223, 224, 225, 4099, 65_536, 65_537}) {
              check(sync, type, op, count, 0, count);
              check(sync, type, op, count + 20, 3 + sync.rank() % 2, count); // different alignments
              // On even ranks aligned to a vector, so they may run another kernel.
              check(sync, type, op, count + 20, sync.rank() % 2 == 0 ? 16 : 3, count);
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void largeBuffersInManyChunks(int ranks) {
    runner.run(
        ranks,
        sync -> {
          check(sync, DataType.FLOAT32, ReduceOp.AVERAGE, 2_000_000, 0, 2_000_000); // in lines
          check(sync, DataType.FLOAT32, ReduceOp.AVERAGE, 5_000_011, 0, 5_000_011);
          check(sync, DataType.FLOAT32, ReduceOp.AVERAGE, 5_000_011, 3, 5_000_000);
          check(sync, DataType.BFLOAT16, ReduceOp.AVERAGE, 9_000_001, 0, 9_000_001);
          check(sync, DataType.FLOAT32, ReduceOp.AVERAGE, 17_000_011, 0, 17_000_011);
        });
  }

  /** Freeing waits for all kernels of a GPU, and here each rank's kernel waits for the others. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void ranksCloseBuffersBetweenCallsOfTwoSyncsInAnyOrder(int ranks) {
    runner.run(
        ranks,
        sync -> {
          int count = 1000;
          try (GradientSync other = sync.split(0, sync.rank());
              CudaStream stream = ((CudaDevice) sync.device()).createStream();
              DeviceBuffer first = sync.allocate(DataType.FLOAT32, count);
              DeviceBuffer second =
                  ((CudaDevice) sync.device()).allocate(DataType.FLOAT32, count, stream)) {
            sync.average(first); // registers the buffers
            other.average(second);
            boolean odd = sync.rank() % 2 == 1;
            for (int call = 0; call < 20; call++) {
              DeviceBuffer closed = sync.allocate(DataType.FLOAT32, count);
              ByteBuffer numbers = Numbers.of(DataType.FLOAT32, sync.rank(), call, count);
              first.copyFrom(numbers);
              second.copyFrom(numbers);
              sync.barrier();
              (odd ? other : sync).average(odd ? second : first);
              closed.close();
              sync.allocate(DataType.FLOAT32, count).close();
              (odd ? sync : other).average(odd ? first : second);
              ByteBuffer mean =
                  Numbers.reduced(DataType.FLOAT32, ReduceOp.AVERAGE, ranks, call, count);
              assertBits(mean, first, "first buffer, call " + call);
              assertBits(mean, second, "second buffer, call " + call);
            }
          }
        });
  }

  private static void check(
      GradientSync sync, DataType type, ReduceOp op, int whole, int first, int count) {
    try (DeviceBuffer buffer = sync.allocate(type, whole)) {
      buffer.copyFrom(Numbers.of(type, 40 + sync.rank(), 0, whole));
      DeviceBuffer slice = buffer.slice(first, count);
      slice.copyFrom(Numbers.of(type, sync.rank(), 0, count));
      sync.allReduce(slice, op);
      ByteBuffer expected = Numbers.of(type, 40 + sync.rank(), 0, whole);
      int size = type.sizeInBytes();
      ByteBuffer reduced = Numbers.reduced(type, op, sync.size(), 0, count);
      expected.put(first * size, reduced, 0, count * size);
      assertBits(expected, buffer, op + " of " + count + " from " + first);
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void differentBuffersAreFoundOnTheGpuAndNothingIsDamaged(int ranks, String algorithm) {
    runner.run(
        ranks,
        algorithm(algorithm),
        sync -> {
          boolean odd = sync.rank() == ranks - 1;
          int count = 100_003;
          try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, count);
              DeviceBuffer b = sync.allocate(DataType.FLOAT32, count + 1)) {
            sync.register(a);
            sync.register(b);
            a.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, count));
            b.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 9, count + 1));
            sync.average(odd ? b : a);
            sync.average(odd ? b : a); // enqueued behind it, so it must not run either
            assertMismatch(
                odd ? b : a,
                "rank 0: allReduce(FLOAT32[100003], AVERAGE)",
                "rank " + (ranks - 1) + ": allReduce(FLOAT32[100004], AVERAGE)");
            assertBits(Numbers.of(DataType.FLOAT32, sync.rank(), 0, count), a, "a");
            assertBits(Numbers.of(DataType.FLOAT32, sync.rank(), 9, count + 1), b, "b");
            assertThrows(RankLostException.class, () -> sync.average(a));
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void differentOperationsAreFoundOnTheGpuAndNothingIsDamaged(int ranks, String algorithm) {
    runner.run(
        ranks,
        algorithm(algorithm),
        sync -> {
          boolean odd = sync.rank() == ranks - 1;
          int count = 70_001;
          try (DeviceBuffer a = sync.allocate(DataType.FLOAT64, count)) {
            sync.register(a);
            a.copyFrom(Numbers.of(DataType.FLOAT64, sync.rank(), 0, count));
            sync.allReduce(a, odd ? ReduceOp.SUM : ReduceOp.MAX);
            assertMismatch(
                a,
                "rank 0: allReduce(FLOAT64[70001], MAX)",
                "rank " + (ranks - 1) + ": allReduce(FLOAT64[70001], SUM)");
            assertBits(Numbers.of(DataType.FLOAT64, sync.rank(), 0, count), a, "a");
          }
        });
  }

  private static void assertMismatch(DeviceBuffer buffer, String... parts) {
    MismatchedCallException e = assertThrows(MismatchedCallException.class, () -> await(buffer));
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void aRankThatHasClosedIsNotWaitedFor(int ranks, String algorithm) {
    runner.run(
        ranks,
        b -> b.set("dev.peer.algorithm", algorithm).timeout(Duration.ofSeconds(60)),
        sync -> {
          DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5000);
          sync.average(buffer);
          sync.average(buffer);
          if (sync.rank() == ranks - 1) {
            sync.close();
            return;
          }
          sync.average(buffer);
          RankLostException e = assertThrows(RankLostException.class, () -> await(buffer));
          assertTrue(e.getMessage().contains("gave up"), e.getMessage());
          buffer.copyTo(new float[5000]); // the data can still be read
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void aRankThatDoesNotComeIsNamed(int ranks, String algorithm) {
    runner.run(
        ranks,
        b -> b.set("dev.peer.algorithm", algorithm).timeout(Duration.ofSeconds(2)),
        sync -> {
          int last = ranks - 1;
          DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 50_000);
          sync.average(buffer);
          sync.average(buffer);
          await(buffer);
          if (sync.rank() == last) {
            Thread.sleep(4000);
          }
          sync.average(buffer);
          sync.average(buffer);
          RankLostException e = assertThrows(RankLostException.class, () -> await(buffer));
          if (sync.rank() != last) {
            assertTrue(
                e.getMessage().matches("(?s).*rank " + last + " \\(.*\\) did not join in time.*"),
                e.getMessage());
            assertTrue(
                e.getMessage().contains("allReduce(FLOAT32[50000], AVERAGE)"), e.getMessage());
          } else {
            assertTrue(e.getMessage().contains("gave up"), e.getMessage());
          }
          assertThrows(RankLostException.class, () -> sync.average(buffer));
          // The GPU is free: it runs other work at once.
          try (CudaDevice device =
                  TestDevices.open(CudaLibrary.api(), ((CudaDevice) sync.device()).ordinal());
              CudaBuffer other = device.allocate(DataType.FLOAT32, 10)) {
            other.copyTo(new float[10]);
          }
          buffer.close();
          if (sync.rank() != last) {
            Thread.sleep(2500); // so that the late rank is not late again
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void severalStreamsKeepTheOrderOfTheCalls(int ranks, String algorithm) {
    runner.run(
        ranks,
        algorithm(algorithm),
        sync -> {
          CudaDevice device = (CudaDevice) sync.device();
          try (CudaStream one = device.createStream();
              CudaStream two = device.createStream();
              CudaBuffer a = device.allocate(DataType.FLOAT32, 30_001, one);
              CudaBuffer b = device.allocate(DataType.FLOAT32, 70_003, two)) {
            for (int round = 0; round < 30; round++) {
              a.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), round, 30_001));
              b.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 2 * round, 70_003));
              if (round % ranks == sync.rank()) {
                Thread.sleep(1);
              }
              sync.average(a);
              sync.allReduce(b, ReduceOp.SUM);
              assertBits(
                  Numbers.reduced(DataType.FLOAT32, ReduceOp.SUM, ranks, 2 * round, 70_003),
                  b,
                  "b");
              assertBits(
                  Numbers.reduced(DataType.FLOAT32, ReduceOp.AVERAGE, ranks, round, 30_001),
                  a,
                  "a");
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void capturedGroupsAreReplayed(int ranks) {
    runner.run(
        ranks,
        sync -> {
          DeviceBuffer[] buffers = new DeviceBuffer[200];
          for (int i = 0; i < buffers.length; i++) {
            buffers[i] = sync.allocate(DataType.INT32, 3 * i);
          }
          Runnable calls =
              () ->
                  sync.grouped(
                      () -> {
                        for (DeviceBuffer buffer : buffers) {
                          sync.allReduce(buffer, ReduceOp.SUM);
                        }
                      });
          calls.run();
          CudaStream stream = ((CudaBuffer) buffers[0]).stream();
          stream.beginCapture();
          calls.run();
          try (CudaGraph graph = stream.endCapture()) {
            sync.barrier(); // on a shared GPU, graph creation may wait for another rank's kernel
            for (DeviceBuffer buffer : buffers) {
              buffer.copyFrom(Numbers.of(DataType.INT32, sync.rank(), 7, (int) buffer.count()));
            }
            graph.launch(stream);
            graph.launch(stream);
            calls.run();
            for (DeviceBuffer buffer : buffers) {
              int count = (int) buffer.count();
              ByteBuffer expected = Numbers.reduced(DataType.INT32, ReduceOp.SUM, ranks, 7, count);
              for (int i = 0; i < count; i++) {
                expected.putInt(4 * i, expected.getInt(4 * i) * ranks * ranks);
              }
              assertBits(expected, buffer, "three sums");
            }
          }
          for (DeviceBuffer buffer : buffers) {
            buffer.close();
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndAlgorithms")
  void capturedCallsAreReplayed(int ranks, String algorithm) {
    runner.run(
        ranks,
        algorithm(algorithm),
        sync -> {
          int count = 20_011;
          try (CudaBuffer buffer = (CudaBuffer) sync.allocate(DataType.INT64, count)) {
            sync.register(buffer);
            buffer.stream().beginCapture();
            sync.allReduce(buffer, ReduceOp.SUM);
            sync.allReduce(buffer, ReduceOp.SUM);
            try (CudaGraph graph = buffer.stream().endCapture()) {
              sync.barrier(); // on a shared GPU, graph creation may wait for another rank's kernel
              buffer.copyFrom(Numbers.of(DataType.INT64, sync.rank(), 0, count));
              for (int i = 0; i < 3; i++) {
                graph.launch(buffer.stream());
              }
              sync.allReduce(buffer, ReduceOp.SUM); // a call outside the graph still matches
              ByteBuffer expected = Numbers.reduced(DataType.INT64, ReduceOp.SUM, ranks, 0, count);
              for (int i = 0; i < count; i++) {
                long sum = expected.getLong(8 * i);
                for (int again = 0; again < 6; again++) {
                  sum *= ranks;
                }
                expected.putLong(8 * i, sum);
              }
              assertBits(expected, buffer, "seven sums");
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void memoryThatCannotBeMappedGoesThroughTheMailboxes(int ranks) {
    runner.run(
        ranks,
        sync -> {
          CudaDevice device = (CudaDevice) sync.device();
          int count = 5_000_003;
          device.makeCurrent();
          Address pooled = new Address();
          try (CudaStream stream = device.createStream()) {
            Assumptions.assumeTrue(
                JCudaDriver.cuMemAllocAsync(
                        pooled, 4L * count, DriverAccess.stream(stream).handle())
                    == CUresult.CUDA_SUCCESS,
                "this driver has no memory pools");
            try (CudaBuffer buffer = device.wrap(DataType.FLOAT32, pooled.value(), count, stream)) {
              buffer.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, count));
              sync.average(buffer);
              assertBits(
                  Numbers.reduced(DataType.FLOAT32, ReduceOp.AVERAGE, ranks, 0, count),
                  buffer,
                  "pooled");
              buffer.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, count));
              sync.broadcast(buffer, ranks - 1);
              assertBits(Numbers.of(DataType.FLOAT32, ranks - 1, 0, count), buffer, "broadcast");
            }
            JCudaDriver.cuMemFreeAsync(pooled, DriverAccess.stream(stream).handle());
          }
        });
  }

  /** JCuda shows an address's number only to subclasses. */
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void closedBuffersAreFreedWhenNobodyMapsThemAnyMore(int ranks) {
    runner.run(
        ranks,
        sync -> {
          CudaDevice device = (CudaDevice) sync.device();
          long bytes = 256 << 20;
          long before = 0;
          for (int round = 0; round < 30; round++) {
            try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, bytes / 4)) {
              sync.average(buffer);
            }
            sync.barrier();
            sync.allocate(DataType.FLOAT32, 1).close(); // frees what nobody maps any more
            sync.barrier();
            if (round == 2) {
              device.makeCurrent();
              before = DriverAccess.gpu(device).api().memoryInfo()[0];
            }
          }
          device.makeCurrent();
          long lost = before - DriverAccess.gpu(device).api().memoryInfo()[0];
          assertTrue(lost < 2 * bytes, "memory lost in 27 rounds: bytes=" + lost);
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void syncsComeAndGo(int ranks) {
    runner.run(
        ranks,
        DEFAULTS,
        sync -> {
          for (int i = 0; i < 10; i++) {
            try (GradientSync other =
                    GradientSync.builder().device("cuda").reducer("peer").create();
                DeviceBuffer a = sync.allocate(DataType.FLOAT64, 3_000_001);
                DeviceBuffer b = other.allocate(DataType.FLOAT64, 3_000_001)) {
              a.copyFrom(Numbers.of(DataType.FLOAT64, sync.rank(), 0, 3_000_001));
              b.copyFrom(Numbers.of(DataType.FLOAT64, sync.rank(), 0, 3_000_001));
              for (int k = 0; k < 20; k++) {
                sync.average(a);
                if (k == 0) {
                  other.average(b);
                }
              }
              assertEquals("peer", other.reducer());
              assertBits(
                  Numbers.reduced(DataType.FLOAT64, ReduceOp.AVERAGE, ranks, 0, 3_000_001), b, "b");
            }
          }
        });
  }

  /** The kernels of both syncs have to run on each GPU at the same time. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void whatOneSyncWaitsForRunsWhileTheOtherWaits(int ranks) {
    runner.run(
        ranks,
        sync -> {
          CudaDevice device = (CudaDevice) sync.device();
          try (GradientSync other =
                  GradientSync.builder()
                      .device("cuda")
                      .reducer("peer")
                      .wire(DataType.BFLOAT16)
                      .create();
              CudaStream stream = device.createStream();
              CudaBuffer lines = device.allocate(DataType.FLOAT32, 1_500_000, stream);
              CudaBuffer chunks = device.allocate(DataType.FLOAT32, 10_000_000, stream);
              CudaBuffer large = (CudaBuffer) other.allocate(DataType.FLOAT32, 10_000_000)) {
            for (CudaBuffer own : List.of(lines, chunks)) {
              sync.register(own);
              other.register(large);
              if (sync.rank() % 2 == 0) {
                sync.average(own);
                other.average(large);
                await(large);
              } else {
                other.average(large);
                await(large); // before it enqueues what even ranks enqueued first
                sync.average(own);
              }
              stream.await();
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void twoSyncsInDifferentOrdersDoNotDeadlock(int ranks) {
    runner.run(
        ranks,
        sync -> {
          try (GradientSync other = GradientSync.builder().device("cuda").reducer("peer").create();
              DeviceBuffer a = sync.allocate(DataType.FLOAT32, 10_000_000);
              DeviceBuffer b = other.allocate(DataType.FLOAT32, 10_000_000)) {
            sync.register(a);
            other.register(b);
            for (int k = 0; k < 200; k++) {
              if (sync.rank() % 2 == 0) {
                sync.average(a);
                other.average(b);
              } else {
                other.average(b);
                sync.average(a);
              }
            }
            await(a);
            await(b);
          }
        });
  }

  private static void await(DeviceBuffer buffer) {
    ((CudaBuffer) buffer).stream().await();
  }

  private static void assertBits(ByteBuffer expected, DeviceBuffer buffer, String what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    int difference = expected.mismatch(actual);
    assertTrue(
        difference < 0,
        () ->
            "wrong bits: "
                + what
                + ", "
                + buffer
                + ", index="
                + difference / buffer.type().sizeInBytes());
  }
}

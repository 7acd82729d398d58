package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.contract.Numbers;
import org.gradientsync.spi.Resources;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls whose kernels are on the GPU before those of the call before have ended. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class PeerHandoverOnGpu {
  private static final int COUNT = 300_007;
  private final GpuRunner runner = new GpuRunner(PeerReducer.NAME);

  Stream<Integer> sizes() {
    return Arrays.stream(runner.sizes()).filter(n -> n > 1).boxed();
  }

  /** All calls go in chunks, however small, so the short ones come close after each other. */
  private static UnaryOperator<GradientSync.Builder> chunks(DataType wire) {
    return b -> {
      GradientSync.Builder all = b.set("peer.way", "stream").timeout(Duration.ofSeconds(20));
      return wire == null ? all : all.wire(wire);
    };
  }

  /** Buffers of a rank on two streams by turns, and one on a third. */
  private static final class Streams implements AutoCloseable {
    final CudaDevice device;
    final List<CudaBuffer> buffers = new ArrayList<>();
    private final Resources resources = new Resources();

    Streams(GradientSync sync, int... counts) {
      GpuRunner.requireLargestShare(sync);
      device = (CudaDevice) sync.device();
      CudaStream[] streams = {device.createStream(true), device.createStream(true)};
      Arrays.stream(streams).forEach(resources::add);
      for (int i = 0; i < counts.length; i++) {
        buffers.add(
            resources.add(
                device.allocate(DataType.FLOAT32, counts[i], streams[i % streams.length])));
      }
      buffers.add(resources.add(device.allocate(DataType.FLOAT32, COUNT)));
      for (CudaBuffer buffer : buffers) {
        sync.register(buffer);
      }
    }

    @Override
    public void close() {
      resources.close();
    }
  }

  private static ByteBuffer values(GradientSync sync, int seed, CudaBuffer buffer) {
    return Numbers.of(DataType.FLOAT32, sync.rank(), seed, (int) buffer.count());
  }

  private static void assertReduced(GradientSync sync, int seed, CudaBuffer buffer, ReduceOp op) {
    int count = (int) buffer.count();
    ByteBuffer expected = Numbers.reduced(DataType.FLOAT32, op, sync.size(), seed, count);
    assertBits(expected, buffer, op + " of " + count + ", seed " + seed);
  }

  private static void assertBits(ByteBuffer expected, CudaBuffer buffer, String what) {
    ByteBuffer found =
        ByteBuffer.allocateDirect((int) buffer.sizeInBytes()).order(expected.order());
    buffer.copyTo(found);
    assertEquals(-1, expected.mismatch(found), what);
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void callsOnSeveralStreamsGiveThePromisedBits(int ranks) {
    runner.run(
        ranks,
        chunks(null),
        sync -> {
          Random random = new Random(7); // the same on all ranks
          try (Streams all = new Streams(sync, COUNT, 4, 1_500_011, 70_001, COUNT, 1_000_000)) {
            for (int round = 0; round < 20; round++) {
              for (CudaBuffer buffer : all.buffers) {
                buffer.copyFrom(values(sync, round, buffer));
              }
              // Twice, so that the second call finds what the first has left.
              for (int call = 0; call < 2 * all.buffers.size(); call++) {
                CudaBuffer buffer = all.buffers.get(call % all.buffers.size());
                sync.allReduce(buffer, call < all.buffers.size() ? ReduceOp.SUM : ReduceOp.MAX);
                if (random.nextInt(8) == 0 && sync.rank() == random.nextInt(ranks)) {
                  Thread.sleep(1);
                }
              }
              for (CudaBuffer buffer : all.buffers) {
                assertReduced(sync, round, buffer, ReduceOp.SUM);
              }
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void elementsThatTravelNarrowToo(int ranks) {
    runner.run(
        ranks,
        chunks(DataType.BFLOAT16),
        sync -> {
          try (Streams all = new Streams(sync, COUNT, 1_500_011, 70_001, COUNT)) {
            float[] ones = new float[1_500_011];
            Arrays.fill(ones, 1 + sync.rank());
            for (int round = 0; round < 20; round++) {
              for (CudaBuffer buffer : all.buffers) {
                buffer.copyFrom(Arrays.copyOf(ones, (int) buffer.count()));
              }
              for (CudaBuffer buffer : all.buffers) {
                sync.allReduce(buffer, ReduceOp.SUM);
              }
              for (CudaBuffer buffer : all.buffers) {
                float[] found = new float[(int) buffer.count()];
                buffer.copyTo(found);
                float[] expected = new float[found.length];
                Arrays.fill(expected, ranks * (ranks + 1) / 2f);
                assertEquals(-1, Arrays.mismatch(expected, found), buffer.toString());
              }
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void replaysOfGraphsComeInBetween(int ranks) {
    runner.run(
        ranks,
        chunks(null),
        sync -> {
          try (Streams all = new Streams(sync, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT)) {
            CudaStream stream = all.buffers.get(1).stream();
            stream.beginCapture();
            sync.allReduce(all.buffers.get(1), ReduceOp.SUM);
            sync.allReduce(all.buffers.get(3), ReduceOp.MAX);
            try (CudaGraph graph = stream.endCapture()) {
              sync.barrier(); // on a shared GPU, to make a graph may wait for another rank's
              for (int round = 0; round < 20; round++) {
                for (CudaBuffer buffer : all.buffers) {
                  buffer.copyFrom(values(sync, round, buffer));
                }
                sync.allReduce(all.buffers.get(0), ReduceOp.SUM);
                graph.launch(round % 2 == 0 ? stream : all.buffers.get(0).stream());
                sync.allReduce(all.buffers.get(2), ReduceOp.SUM);
                sync.allReduce(all.buffers.get(5), ReduceOp.SUM); // of another stream: handed over
                sync.allReduce(all.buffers.get(4), ReduceOp.SUM);
                all.device.stream().await();
                for (CudaBuffer buffer : all.buffers) {
                  buffer.stream().await();
                }
                assertReduced(sync, round, all.buffers.get(0), ReduceOp.SUM);
                assertReduced(sync, round, all.buffers.get(1), ReduceOp.SUM);
                assertReduced(sync, round, all.buffers.get(2), ReduceOp.SUM);
                assertReduced(sync, round, all.buffers.get(3), ReduceOp.MAX);
                assertReduced(sync, round, all.buffers.get(4), ReduceOp.SUM);
                assertReduced(sync, round, all.buffers.get(5), ReduceOp.SUM);
              }
            }
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void aMismatchStopsWhatIsThereAlready(int ranks) {
    runner.run(
        ranks,
        chunks(null),
        sync -> {
          boolean odd = sync.rank() == ranks - 1;
          try (Streams all = new Streams(sync, COUNT, 1_500_011, COUNT, COUNT, COUNT)) {
            for (CudaBuffer buffer : all.buffers) {
              buffer.copyFrom(values(sync, 3, buffer));
            }
            for (int i = 0; i < 5; i++) {
              sync.allReduce(all.buffers.get(i), odd && i == 2 ? ReduceOp.MAX : ReduceOp.SUM);
            }
            GradientSyncException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> all.buffers.forEach(buffer -> buffer.stream().await()));
            assertTrue(e.getMessage().contains("FLOAT32[" + COUNT + "], MAX"), e.getMessage());
            for (int i = 0; i < 2; i++) {
              assertReduced(sync, 3, all.buffers.get(i), ReduceOp.SUM);
            }
            for (int i = 2; i < 5; i++) {
              assertBits(values(sync, 3, all.buffers.get(i)), all.buffers.get(i), "call " + i);
            }
            assertThrows(RankLostException.class, () -> sync.average(all.buffers.get(0)));
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void whatWaitsForALostRankEndsAtTheTimeOut(int ranks) {
    runner.run(
        ranks,
        b -> chunks(null).apply(b).timeout(Duration.ofSeconds(2)),
        sync -> {
          try (Streams all = new Streams(sync, COUNT, COUNT, COUNT, COUNT)) {
            sync.average(all.buffers.get(0));
            sync.average(all.buffers.get(1));
            if (sync.rank() == 0) {
              Thread.sleep(6000); // neither comes nor goes
              return;
            }
            sync.average(all.buffers.get(2));
            sync.average(all.buffers.get(3));
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> all.buffers.forEach(buffer -> buffer.stream().await()));
            assertTrue(e.getMessage().contains("rank 0"), e.getMessage());
          }
        });
  }
}

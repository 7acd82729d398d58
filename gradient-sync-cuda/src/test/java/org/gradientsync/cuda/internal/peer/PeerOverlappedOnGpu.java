package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests the bits of calls that overlap with other work, with the algorithm {@code stream_few_ctas}.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
class PeerOverlappedOnGpu {
  private static final int[] COUNTS = {1, 13, 1009, 100_000, 300_007, 2_500_003};
  private static final int CALLS = 3; // each call finds what the previous one left behind

  IntStream sizes() {
    return GpuRunner.peerSizes(8).filter(n -> n > 1);
  }

  private static void run(int ranks, String sms, LocalRanks.RankTask task) {
    UnaryOperator<GradientSync.Builder> options =
        b ->
            b.device("cuda")
                .reducer("peer")
                .set("dev.peer.algorithm", "stream") // for all sizes
                .set("overlap.sms", sms)
                .timeout(Duration.ofSeconds(20));
    LocalRanks.run(
        ranks,
        options,
        sync -> {
          PeerShares.requireLargest(sync);
          task.run(sync);
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void givesThePromisedBits(int ranks) {
    run(
        ranks,
        "24",
        sync -> {
          for (DataType type : DataType.values()) {
            for (int count : COUNTS) {
              for (ReduceOp op : ReduceOp.values()) {
                if (op.isDefinedFor(type)) {
                  check(sync, type, op, count, 0);
                }
              }
            }
            check(sync, type, ReduceOp.SUM, 4099, 1 + sync.rank() % 3); // not aligned
            check(sync, type, ReduceOp.SUM, 4096, 64);
          }
        });
  }

  /** From one block to the maximum. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void withAnyNumberOfSms(int ranks) {
    for (String sms : new String[] {"1", "5", "512"}) {
      run(
          ranks,
          sms,
          sync -> {
            check(sync, DataType.FLOAT32, ReduceOp.AVERAGE, 2_500_003, 0);
            check(sync, DataType.BFLOAT16, ReduceOp.SUM, 12_345, 0);
          });
    }
  }

  private static void check(GradientSync sync, DataType type, ReduceOp op, int count, int first) {
    CudaDevice device = (CudaDevice) sync.device();
    try (CudaStream stream = device.createStream(true);
        CudaBuffer buffer = device.allocate(type, count + first, stream)) {
      DeviceBuffer slice = buffer.slice(first, count);
      ByteBuffer expected = Numbers.reduced(type, op, sync.size(), 0, count);
      ByteBuffer actual = Numbers.memory(type, count);
      for (int call = 0; call < CALLS; call++) {
        slice.copyFrom(Numbers.of(type, sync.rank(), 0, count));
        sync.allReduce(slice, op);
        slice.copyTo(actual.clear());
        int difference = expected.mismatch(actual);
        assertTrue(
            difference < 0,
            () ->
                "wrong bits: "
                    + type
                    + "["
                    + count
                    + "], "
                    + op
                    + ", index="
                    + difference / type.sizeInBytes());
      }
    }
  }
}

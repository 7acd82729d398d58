package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests the bits of {@code peer} with many ranks: threads of one JVM, up to two per GPU. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class PeerManyRanksOnGpu {
  Stream<Arguments> sizesAndAlgorithms() {
    int most = Math.min(8, 2 * CudaLibrary.api().deviceCount());
    return IntStream.rangeClosed(2, most)
        .boxed()
        .flatMap(n -> Stream.of("one_shot", "two_shot", "stream").map(w -> Arguments.of(n, w)));
  }

  @ParameterizedTest
  @MethodSource("sizesAndAlgorithms")
  void givesThePromisedBits(int ranks, String algorithm) {
    LocalRanks.run(
        ranks,
        b ->
            b.device("cuda")
                .reducer("peer")
                .set("dev.peer.algorithm", algorithm)
                .set("dev.peer.sharing", "on")
                .timeout(Duration.ofSeconds(20)),
        sync -> {
          for (DataType type : DataType.values()) {
            check(sync, type, ReduceOp.SUM, 100_003, 0);
            check(sync, type, ReduceOp.MIN, 1009, 3);
            check(sync, type, ReduceOp.PROD, 13, 0);
            if (type.isFloatingPoint()) {
              check(sync, type, ReduceOp.AVERAGE, 300_007, 0);
              check(sync, type, ReduceOp.AVERAGE, 4099, 1 + sync.rank() % 3);
            }
            check(sync, type, ReduceOp.SUM, 100_000, 0); // whole vectors
            check(sync, type, ReduceOp.MAX, 400_000, 0);
          }
        });
  }

  private static void check(GradientSync sync, DataType type, ReduceOp op, int count, int first) {
    try (DeviceBuffer buffer = sync.allocate(type, count + first)) {
      DeviceBuffer slice = buffer.slice(first, count);
      slice.copyFrom(Numbers.of(type, sync.rank(), 0, count));
      sync.allReduce(slice, op);
      ByteBuffer actual = Numbers.memory(type, count);
      slice.copyTo(actual);
      int difference = Numbers.reduced(type, op, sync.size(), 0, count).mismatch(actual);
      assertTrue(
          difference < 0,
          () -> "wrong bits: " + type + ", " + op + ", index=" + difference / type.sizeInBytes());
    }
  }
}

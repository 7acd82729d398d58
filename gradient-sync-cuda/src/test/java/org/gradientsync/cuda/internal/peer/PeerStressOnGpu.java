package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.RankRunner;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Makes a hundred thousand averages of random sizes, with random delays on random ranks, and checks
 * all bits.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(280)
class PeerStressOnGpu {
  private static final int AVERAGES = Integer.getInteger("averages", 100_000);
  private static final int BUFFERS = 48;
  private static final int LARGEST = 2_500_000;
  private final RankRunner runner = new GpuRunner(PeerReducer.NAME);

  Stream<Integer> sizes() {
    return Arrays.stream(runner.sizes()).filter(n -> n > 1).boxed();
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void randomSizesAndDelays(int ranks) {
    runner.run(ranks, sync -> stress(sync, ranks));
  }

  private static void stress(GradientSync sync, int ranks) {
    SplittableRandom shared = new SplittableRandom(7); // the same numbers on all ranks
    SplittableRandom own = new SplittableRandom(100 + sync.rank());
    DeviceBuffer whole = sync.allocate(DataType.FLOAT32, 2L * LARGEST);
    DeviceBuffer[] slices = new DeviceBuffer[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
      int count = i == 0 ? LARGEST : i < 4 ? 1 + shared.nextInt(400_000) : 1 + shared.nextInt(3000);
      slices[i] = whole.slice(shared.nextInt(LARGEST), count);
      sync.register(slices[i]);
    }
    FloatBuffer given = floats();
    FloatBuffer got = floats();
    float[] expected = new float[LARGEST];
    for (int call = 0; call < AVERAGES; call++) {
      int choice = shared.nextInt(1000);
      DeviceBuffer slice =
          slices[choice == 0 ? 0 : choice < 20 ? 1 + choice % 3 : 4 + choice % (BUFFERS - 4)];
      int count = (int) slice.count();
      for (int i = 0; i < count; i++) {
        given.put(i, value(call, sync.rank(), i));
        float sum = value(call, 0, i);
        for (int rank = 1; rank < ranks; rank++) {
          sum += value(call, rank, i);
        }
        expected[i] = sum / ranks;
      }
      slice.copyFrom(given.slice(0, count));
      if (own.nextInt(60) == 0) {
        LockSupport.parkNanos(own.nextInt(300_000));
      }
      sync.average(slice);
      slice.copyTo(got.slice(0, count));
      for (int i = 0; i < count; i++) {
        if (Float.floatToRawIntBits(got.get(i)) != Float.floatToRawIntBits(expected[i])) {
          int index = i;
          int number = call;
          assertTrue(
              false, () -> "wrong bits: call=" + number + ", count=" + count + ", index=" + index);
        }
      }
    }
    whole.close();
  }

  private static FloatBuffer floats() {
    return ByteBuffer.allocateDirect(4 * LARGEST).order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  private static float value(int call, int rank, int index) {
    int x = call * 0x9E3779B9 + rank * 0x85EBCA6B + index * 0xC2B2AE35;
    x ^= x >>> 15;
    return (x & 0xffffff) * 0x1p-20f - 7;
  }
}

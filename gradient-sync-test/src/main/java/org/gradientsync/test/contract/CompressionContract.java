package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests what {@link GradientSync.Builder#wire} promises with every reducer. The expected bits come
 * from double arithmetic that shares no code with the library.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class CompressionContract {
  private static final int[] COUNTS = {0, 1, 2, 5, 64, 1000, 4099, 131_075};
  private static final float[] SPECIAL = {
    0f,
    -0f,
    Float.POSITIVE_INFINITY,
    Float.NEGATIVE_INFINITY,
    Float.NaN,
    Float.intBitsToFloat(0x7f812345),
    Float.MAX_VALUE,
    0x1.fdp127f, // fits BFLOAT16
    0x1.ffp127f, // does not fit BFLOAT16
    Float.MIN_VALUE,
    0x1p-134f, // half of the smallest BFLOAT16
    0x1.8p-133f,
    65504f,
    65519.996f,
    65520f,
    -65520f,
    0x1p-25f,
    0x1.000002p-25f,
    0x1.ffcp-15f,
    1 + 0x1p-8f, // ties
    1 + 0x3p-8f,
    1 + 0x1p-11f,
    1 + 0x3p-11f
  };
  private static final ReduceOp[] SUMS = {ReduceOp.SUM, ReduceOp.AVERAGE};

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Arguments> sizesAndWires() {
    return sizes()
        .flatMap(
            n -> Stream.of(DataType.BFLOAT16, DataType.FLOAT16).map(wire -> Arguments.of(n, wire)));
  }

  private void run(int ranks, DataType wire, RankTask task) {
    runner().run(ranks, builder -> builder.wire(wire), task);
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void reducesBitExactly(int ranks, DataType wire) {
    run(
        ranks,
        wire,
        sync -> {
          assertEquals(Optional.of(wire), sync.wire());
          for (ReduceOp op : SUMS) {
            for (int count : COUNTS) {
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
                buffer.copyFrom(elements(sync.rank(), 0, count));
                sync.allReduce(buffer, op);
                assertBits(expected(wire, op, ranks, 0, count), buffer);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void matchesReductionOf16BitBuffer(int ranks, DataType wire) {
    int count = 3001;
    run(
        ranks,
        wire,
        sync -> {
          try (DeviceBuffer wide = sync.allocate(DataType.FLOAT32, count);
              DeviceBuffer narrow = sync.allocate(wire, count)) {
            BackendDevice device = (BackendDevice) sync.device();
            for (ReduceOp op : SUMS) {
              wide.copyFrom(elements(sync.rank(), 0, count));
              device.convert(wide, narrow);
              sync.allReduce(wide, op);
              sync.allReduce(narrow, op);
              float[] result = new float[count];
              wide.copyTo(result);
              if (ranks > 1) {
                device.convert(narrow, wide);
                assertBits(result, wide);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void reducesSlicesAtOddOffsets(int ranks, DataType wire) {
    int whole = 40_003;
    int first = 7;
    int count = 35_111;
    run(
        ranks,
        wire,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, whole)) {
            float[] expected = elements(sync.rank(), 0, whole);
            buffer.copyFrom(expected);
            sync.allReduce(buffer.slice(first, count), ReduceOp.SUM);
            float[] part = expected(wire, ReduceOp.SUM, ranks, first, count);
            System.arraycopy(part, 0, expected, first, count);
            assertBits(expected, buffer);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void reducesLargeAndSmallBuffersAlternately(int ranks, DataType wire) {
    int[] counts = {10, 5000, 64, 70_001, 70_002, 3};
    run(
        ranks,
        wire,
        sync -> {
          try (DeviceBuffer kept = sync.allocate(DataType.FLOAT32, 77)) {
            for (int round = 0; round < 2; round++) {
              for (int count : counts) {
                try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
                  buffer.copyFrom(elements(sync.rank(), round, count));
                  kept.copyFrom(elements(sync.rank(), count, 77));
                  sync.average(buffer);
                  sync.average(kept);
                  assertBits(expected(wire, ReduceOp.AVERAGE, ranks, round, count), buffer);
                  assertBits(expected(wire, ReduceOp.AVERAGE, ranks, count, 77), kept);
                }
              }
            }
          }
        });
  }

  /** The 16-bit elements take a little more than 32 MiB. */
  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void reducesBuffersOfSeveralPieces(int ranks, DataType wire) {
    int border = 1 << 24;
    int count = border + 1003;
    int[] places = {0, border / 2 - 500, border - 1000, border - 3, border + 3};
    run(
        ranks,
        wire,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
            for (int round = 0; round < 2; round++) {
              buffer.fillZero();
              for (int place : places) {
                buffer.slice(place, 1000).copyFrom(elements(sync.rank(), place, 1000));
              }
              sync.average(buffer);
              for (int place : places) {
                int length = place == border - 1000 ? 997 : 1000; // the next place starts there
                assertBits(
                    expected(wire, ReduceOp.AVERAGE, ranks, place, length),
                    buffer.slice(place, length));
              }
              assertBits(new float[1000], buffer.slice(1000, 1000));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void ordersCallsOnTwoStreams(int ranks, DataType wire) {
    int count = 70_007;
    run(
        ranks,
        wire,
        sync -> {
          BackendDevice device = (BackendDevice) sync.device();
          try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, count);
              DeviceBuffer memory = sync.allocate(DataType.FLOAT32, count);
              var beside = device.createStream(true)) {
            device.await(memory);
            DeviceBuffer b = device.on(beside, memory);
            for (int round = 0; round < 2; round++) {
              a.copyFrom(elements(sync.rank(), round, count));
              b.copyFrom(elements(sync.rank(), round + 5, count));
              sync.average(a);
              sync.average(b);
              assertBits(expected(wire, ReduceOp.AVERAGE, ranks, round, count), a);
              assertBits(expected(wire, ReduceOp.AVERAGE, ranks, round + 5, count), b);
            }
            b.close();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void otherTypesAndOperationsAreNotCompressed(int ranks, DataType wire) {
    int count = 1003;
    run(
        ranks,
        wire,
        sync -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              boolean adds = op == ReduceOp.SUM || op == ReduceOp.AVERAGE;
              if (op == ReduceOp.AVERAGE && !type.isFloatingPoint()
                  || adds && type == DataType.FLOAT32) {
                continue;
              }
              try (DeviceBuffer buffer = sync.allocate(type, count)) {
                buffer.copyFrom(Numbers.of(type, sync.rank(), 0, count));
                sync.allReduce(buffer, op);
                assertBytes(Numbers.reduced(type, op, ranks, 0, count), buffer);
              }
            }
          }
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
            buffer.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, count));
            sync.broadcast(buffer, ranks - 1);
            assertBytes(Numbers.of(DataType.FLOAT32, ranks - 1, 0, count), buffer);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void bucketsAreCompressed(int ranks, DataType wire) {
    List<Parameter> parameters =
        List.of(
            new Parameter("weights", DataType.FLOAT32, 2000),
            new Parameter("bias", DataType.FLOAT32, 33),
            new Parameter("scale", DataType.FLOAT64, 5));
    run(
        ranks,
        wire,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, parameters).firstBucketBytes(100).build()) {
            for (int step = 0; step < 3; step++) {
              buckets.gradient(2).copyFrom(Numbers.of(DataType.FLOAT64, sync.rank(), step, 5));
              buckets.ready(2);
              buckets.gradient(1).copyFrom(elements(sync.rank(), step, 33));
              buckets.ready(1);
              buckets.gradient(0).copyFrom(elements(sync.rank(), step + 9, 2000));
              buckets.ready(0);
              buckets.finish();
              assertBits(
                  expected(wire, ReduceOp.AVERAGE, ranks, step + 9, 2000), buckets.gradient(0));
              assertBits(expected(wire, ReduceOp.AVERAGE, ranks, step, 33), buckets.gradient(1));
              assertBytes(
                  Numbers.reduced(DataType.FLOAT64, ReduceOp.AVERAGE, ranks, step, 5),
                  buckets.gradient(2));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void mismatchedCallsThrowOnAllRanksAndKeepData(int ranks, DataType wire) {
    if (ranks == 1) {
      return;
    }
    int last = ranks - 1;
    run(
        ranks,
        wire,
        sync -> {
          boolean odd = sync.rank() == last;
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5000);
              DeviceBuffer narrow = sync.allocate(wire, 5000)) {
            float[] values = elements(sync.rank(), 0, 5000);
            buffer.copyFrom(values);
            assertMismatch(
                () -> sync.average(odd ? narrow : buffer),
                "rank 0: allReduce(FLOAT32[5000], AVERAGE)",
                "rank " + last + ": allReduce(" + wire + "[5000], AVERAGE)");
            assertMismatch(
                () -> sync.average(odd ? buffer.slice(1, 4999) : buffer),
                "rank 0: allReduce(FLOAT32[5000], AVERAGE)",
                "rank " + last + ": allReduce(FLOAT32[4999], AVERAGE)");
            assertMismatch(
                () -> sync.average(odd ? buffer.slice(1, 0) : buffer),
                "rank " + last + ": allReduce(FLOAT32[0], AVERAGE)");
            assertMismatch(
                () -> sync.allReduce(buffer, odd ? ReduceOp.MAX : ReduceOp.SUM),
                "rank 0: allReduce(FLOAT32[5000], SUM)",
                "rank " + last + ": allReduce(FLOAT32[5000], MAX)");
            assertMismatch(
                () -> {
                  if (odd) {
                    sync.broadcast(buffer, 0);
                  } else {
                    sync.average(buffer);
                  }
                },
                "rank " + last + ": broadcast(FLOAT32[5000], root=0)");
            assertBits(values, buffer);
            assertBits(new float[0], buffer.slice(5000, 0));
            short[] zeros = new short[5000];
            narrow.copyTo(zeros);
            assertEquals(-1, Arrays.mismatch(new short[5000], zeros));
            sync.average(buffer); // the sync still works
            assertBits(expected(wire, ReduceOp.AVERAGE, ranks, 0, 5000), buffer);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void differentWireTypesThrowOnAllRanks(int ranks) {
    if (ranks == 1) {
      return;
    }
    runner()
        .run(
            ranks,
            sync -> {
              assertEquals(Optional.empty(), sync.wire());
              GradientSync.Builder builder = GradientSync.builder().reducer(sync.reducer());
              if (sync.rank() == 0) {
                builder.wire(DataType.BFLOAT16);
              } else if (sync.rank() == 1) {
                builder.wire(DataType.FLOAT16);
              }
              UnavailableException e = assertThrows(UnavailableException.class, builder::create);
              String text = e.getMessage();
              assertTrue(
                  text.contains("wire=bfloat16 on ranks [0]; wire=float16 on ranks [1]"), text);
              assertTrue(ranks == 2 || text.contains("; wire=(none) on ranks [2"), text);
              assertTrue(text.contains("rank=" + sync.rank() + ";"), text);
              sync.barrier();
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndWires")
  void staysWithinTheErrorBound(int ranks, DataType wire) {
    int count = 20_000;
    // No sum overflows: FLOAT16 holds 7 ranks times 2^12.
    int least = wire == DataType.FLOAT16 ? -30 : -140;
    int most = wire == DataType.FLOAT16 ? 12 : 123;
    double[] sums = new double[count];
    double[] magnitudes = new double[count];
    for (int rank = 0; rank < ranks; rank++) {
      for (int i = 0; i < count; i++) {
        double value = spread(rank, i, least, most);
        sums[i] += value;
        magnitudes[i] += Math.abs(value);
      }
    }
    run(
        ranks,
        wire,
        sync -> {
          float[] result = new float[count];
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
            for (ReduceOp op : SUMS) {
              for (int i = 0; i < count; i++) {
                result[i] = spread(sync.rank(), i, least, most);
              }
              buffer.copyFrom(result);
              sync.allReduce(buffer, op);
              buffer.copyTo(result);
              double divisor = op == ReduceOp.AVERAGE ? ranks : 1;
              double worst = 0;
              for (int i = 0; i < count; i++) {
                double error = Math.abs(result[i] - sums[i] / divisor);
                double bound = bound(wire, op, ranks, magnitudes[i] / divisor, result[i]);
                worst = Math.max(worst, error / bound);
                assertTrue(
                    error <= bound,
                    "op=" + op + ", index=" + i + ", error=" + error + ", bound=" + bound);
              }
              // A bound far above all errors would prove little.
              assertTrue(worst > 0.4 || ranks == 1, "op=" + op + ", worst=" + worst);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allocatesNothingWhenWarm(int ranks) {
    run(
        ranks,
        DataType.BFLOAT16,
        sync -> {
          com.sun.management.ThreadMXBean threads =
              (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
          try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 20_000);
              DeviceBuffer b = sync.allocate(DataType.FLOAT32, 100);
              DeviceBuffer part = sync.allocate(DataType.FLOAT32, 100);
              DeviceBuffer all = sync.allocate(DataType.FLOAT32, 100L * ranks)) {
            for (int i = 0; i < 20; i++) {
              sync.average(a);
              sync.average(b);
              sync.reduceScatter(all, part, ReduceOp.SUM);
            }
            long allocated = Long.MAX_VALUE;
            for (int round = 0; round < 10 && sync.communicator().any(allocated >= 3000); round++) {
              long before = threads.getCurrentThreadAllocatedBytes();
              for (int i = 0; i < 100; i++) {
                sync.average(a);
                sync.average(b);
                sync.reduceScatter(all, part, ReduceOp.SUM);
              }
              allocated = Math.min(allocated, threads.getCurrentThreadAllocatedBytes() - before);
            }
            // One object per call would be 3200 bytes in each round. A long wait allocates, too.
            assertTrue(allocated < 3000, "bytes allocated in 300 calls: " + allocated);
          }
        });
  }

  /**
   * Returns the largest allowed error: two roundings to the wire type, and those of float32 in
   * between.
   *
   * @param magnitude the sum or mean of the elements' magnitudes
   */
  private static double bound(
      DataType wire, ReduceOp op, int ranks, double magnitude, double result) {
    double u = wire == DataType.BFLOAT16 ? 0x1p-8 : 0x1p-11;
    double denormal = wire == DataType.BFLOAT16 ? 0x1p-134 : 0x1p-25;
    boolean divides = op == ReduceOp.AVERAGE;
    double rounded = u * magnitude + (divides ? 1 : ranks) * denormal;
    double steps = divides ? ranks : ranks - 1;
    double added = steps * 0x1p-24 / (1 - steps * 0x1p-24) * (magnitude + rounded);
    return rounded + added + (divides ? 0x1p-150 : 0) + u * Math.abs(result) + denormal;
  }

  /**
   * Returns a number from a wide range of magnitudes, of nearly the same magnitude on all ranks.
   */
  private static float spread(int rank, int index, int least, int most) {
    long common = hash(index, -1);
    long own = hash(index, rank);
    int exponent = least + (int) Long.remainderUnsigned(common, most - least) - (int) (own & 1);
    double fraction = 1 + (own >>> 12) * 0x1p-52;
    return (float) Math.scalb((own & 2) == 0 ? fraction : -fraction, exponent);
  }

  private static float[] elements(int rank, long first, int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = element(rank, first + i);
    }
    return values;
  }

  private static float[] expected(DataType wire, ReduceOp op, int ranks, long first, int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = ranks == 1 ? element(0, first + i) : expected(wire, op, ranks, first + i);
    }
    return values;
  }

  private static float expected(DataType wire, ReduceOp op, int ranks, long index) {
    float sum = round(wire, element(0, index));
    for (int rank = 1; rank < ranks; rank++) {
      sum += round(wire, element(rank, index));
    }
    return round(wire, op == ReduceOp.AVERAGE ? sum / ranks : sum);
  }

  /** Returns any bits, gradient-sized numbers, special values, or numbers near FLOAT16's limits. */
  private static float element(int rank, long index) {
    long hash = hash(index, rank);
    return switch ((int) (index % 5)) {
      case 0 -> Float.intBitsToFloat((int) hash);
      case 1 -> SPECIAL[(int) Long.remainderUnsigned(hash, SPECIAL.length)];
      case 2 -> (float) Math.scalb(hash * 0x1p-63, (int) Long.remainderUnsigned(hash, 48) - 30);
      default -> (float) (hash * 0x1p-63);
    };
  }

  private static long hash(long index, int rank) {
    long hash = (index * 31 + rank + 2) * 0x9E3779B97F4A7C15L;
    hash ^= hash >>> 29;
    hash *= 0xBF58476D1CE4E5B9L;
    return hash ^ hash >>> 32;
  }

  /** Rounds to a multiple of the 16-bit type's last place, to nearest even. */
  private static float round(DataType wire, float value) {
    int precision = wire == DataType.BFLOAT16 ? 8 : 11;
    int least = wire == DataType.BFLOAT16 ? -126 : -14;
    double end = wire == DataType.BFLOAT16 ? 0x1p128 : 0x1p16;
    if (Float.isNaN(value)) {
      return Float.NaN;
    }
    if (Float.isInfinite(value)) {
      return value;
    }
    double unit =
        Math.scalb(1.0, Math.max(Math.getExponent((double) value), least) - precision + 1);
    double rounded = Math.rint(value / unit) * unit;
    return Math.abs(rounded) < end
        ? (float) rounded
        : Math.copySign(Float.POSITIVE_INFINITY, value);
  }

  private static void assertMismatch(Runnable call, String... parts) {
    MismatchedCallException e = assertThrows(MismatchedCallException.class, call::run);
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  private static void assertBits(float[] expected, DeviceBuffer buffer) {
    float[] actual = new float[expected.length];
    buffer.copyTo(actual);
    for (int i = 0; i < actual.length; i++) {
      int bits = Float.floatToRawIntBits(expected[i]);
      if (Float.floatToRawIntBits(actual[i]) != bits) {
        assertEquals(
            Integer.toHexString(bits),
            Integer.toHexString(Float.floatToRawIntBits(actual[i])),
            "index=" + i + ", buffer=" + buffer);
      }
    }
  }

  private static void assertBytes(ByteBuffer expected, DeviceBuffer buffer) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    assertEquals(-1, expected.mismatch(actual), "buffer=" + buffer);
  }
}

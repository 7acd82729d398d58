package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.PendingAverage;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests what {@link GradientSync} promises with every reducer, above all the promised bits. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class ReducerContract {
  private static final int[] COUNTS = {0, 1, 2, 5, 64, 1000, 4099, 131_075};

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> several() {
    return sizes().filter(ranks -> ranks > 1);
  }

  Stream<Arguments> sizesAndTypes() {
    return sizes().flatMap(n -> Arrays.stream(DataType.values()).map(t -> Arguments.of(n, t)));
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void reducesBitExactly(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (ReduceOp op : ReduceOp.values()) {
                for (int count : COUNTS) {
                  if (op == ReduceOp.AVERAGE && !type.isFloatingPoint()) {
                    continue;
                  }
                  try (DeviceBuffer buffer = sync.allocate(type, count)) {
                    buffer.copyFrom(Numbers.of(type, sync.rank(), 0, count));
                    sync.allReduce(buffer, op);
                    assertBits(Numbers.reduced(type, op, ranks, 0, count), buffer, type, op);
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void reducesSlicesAtOddOffsets(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              int whole = 40_003;
              int first = 7;
              int count = 35_111;
              try (DeviceBuffer buffer = sync.allocate(type, whole)) {
                buffer.copyFrom(Numbers.of(type, sync.rank(), 0, whole));
                sync.allReduce(buffer.slice(first, count), ReduceOp.SUM);
                ByteBuffer expected = Numbers.of(type, sync.rank(), 0, whole);
                int size = type.sizeInBytes();
                expected.put(
                    first * size,
                    Numbers.reduced(type, ReduceOp.SUM, ranks, first, count),
                    0,
                    count * size);
                assertBits(expected, buffer, type, ReduceOp.SUM);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reducesTheSameBuffersRepeatedly(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              try (DeviceBuffer a = sync.allocate(type, 10_001);
                  DeviceBuffer b = sync.allocate(type, 77)) {
                for (int round = 0; round < 20; round++) {
                  a.copyFrom(Numbers.of(type, sync.rank(), round, 10_001));
                  b.copyFrom(Numbers.of(type, sync.rank(), round * 3, 77));
                  sync.average(b); // the smaller one first, so that its scratch memory has to grow
                  sync.average(a);
                  assertBits(
                      Numbers.reduced(type, ReduceOp.AVERAGE, ranks, round, 10_001),
                      a,
                      type,
                      ReduceOp.AVERAGE);
                  assertBits(
                      Numbers.reduced(type, ReduceOp.AVERAGE, ranks, round * 3, 77),
                      b,
                      type,
                      ReduceOp.AVERAGE);
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void averagesArrays(int ranks) {
    runner()
        .run(
            ranks,
            b -> b.requireFinite(true),
            sync -> {
              for (int round = 0; round < 2; round++) {
                for (int length = 0; length < 20; length++) {
                  float[] floats = new float[length];
                  double[] doubles = new double[length];
                  Arrays.fill(floats, sync.rank() + length + round);
                  Arrays.fill(doubles, 0.5 - sync.rank());
                  sync.average(floats);
                  sync.average(doubles);
                  float average = (ranks - 1) / 2f;
                  for (int i = 0; i < length; i++) {
                    assertEquals(average + length + round, floats[i]);
                    assertEquals(0.5 - average, doubles[i]);
                  }
                }
              }
              float[] bad = {sync.rank(), Float.NaN};
              assertThrows(NotFiniteException.class, () -> sync.average(bad));
              assertEquals(sync.rank(), bad[0]);
              List<float[]> several = List.of(new float[5], bad);
              SparseRows rows = new SparseRows(10, 2, new long[] {7}, bad);
              assertNotFinite(() -> sync.average(several), "index=6 (array 1[1])");
              assertNotFinite(() -> sync.average(rows), "index=1 (row 7[1])");
              assertThrows(
                  IllegalStateException.class, () -> sync.grouped(() -> sync.average(bad)));
              assertThrows(NullPointerException.class, () -> sync.average((float[]) null));
              sync.close();
              assertThrows(IllegalStateException.class, () -> sync.average(bad));
            });
  }

  private static void assertNotFinite(Executable call, String place) {
    String text = assertThrows(NotFiniteException.class, call).getMessage();
    assertTrue(text.contains(place), text);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void averagesManyArraysAtOnce(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int[] lengths : new int[][] {{}, {0}, {7}, {3, 0, 1_000, 1}, {5, 70_001, 2}}) {
                for (int round = 0; round < 2; round++) {
                  List<float[]> arrays = new ArrayList<>();
                  for (int i = 0; i < lengths.length; i++) {
                    arrays.add(new float[lengths[i]]);
                    floats(Numbers.of(DataType.FLOAT32, sync.rank(), i + round, lengths[i]))
                        .get(arrays.get(i));
                  }
                  sync.average(arrays);
                  for (int i = 0; i < lengths.length; i++) {
                    ByteBuffer expected =
                        Numbers.reduced(
                            DataType.FLOAT32, ReduceOp.AVERAGE, ranks, i + round, lengths[i]);
                    int difference =
                        expected.order(ByteOrder.nativeOrder()).mismatch(bytes(arrays.get(i)));
                    assertEquals(-1, difference, "array " + i + " of " + lengths.length);
                  }
                }
              }
              List<float[]> arrays = List.of(new float[1], new float[33], new float[1]);
              for (int[] lengths : new int[][] {{2, 1, 32}, {35}, {}}) {
                List<float[]> others = Arrays.stream(lengths).mapToObj(float[]::new).toList();
                List<float[]> mine = sync.rank() == 0 ? arrays : others;
                if (ranks > 1 && looksFirst()) {
                  int total = Arrays.stream(lengths).sum();
                  String last = "[" + total + "] \"" + lengths.length + " arrays #";
                  assertMismatch(() -> sync.average(mine), "[35] \"3 arrays #", last);
                }
              }
              List<float[]> bad = Arrays.asList(new float[1], null);
              assertThrows(NullPointerException.class, () -> sync.average(bad));
              sync.average(arrays); // the sync still works
            });
  }

  private static FloatBuffer floats(ByteBuffer bytes) {
    return bytes.order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  private static ByteBuffer bytes(float[] values) {
    ByteBuffer bytes = Numbers.memory(DataType.FLOAT32, values.length);
    floats(bytes).put(values);
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void averagesInTheBackground(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              int[] counts = {1, 0, 70_001, 1_000};
              List<DeviceBuffer> buffers = new ArrayList<>();
              for (int count : counts) {
                buffers.add(sync.allocate(type, count));
              }
              for (int round = 0; round < 3; round++) {
                List<PendingAverage> pending = new ArrayList<>();
                for (int i = 0; i < counts.length; i++) {
                  buffers.get(i).copyFrom(Numbers.of(type, sync.rank(), i, counts[i]));
                  pending.add(sync.averageAsync(buffers.get(i)));
                }
                if (round == 1) {
                  sync.barrier(); // comes after them on all ranks
                } else if (round == 2) {
                  Collections.reverse(pending);
                }
                for (PendingAverage average : pending) {
                  average.await();
                  average.await(); // changes nothing
                }
                for (int i = 0; i < counts.length; i++) {
                  assertBits(
                      Numbers.reduced(type, ReduceOp.AVERAGE, ranks, i, counts[i]),
                      buffers.get(i),
                      type,
                      ReduceOp.AVERAGE);
                }
              }
              sync.averageAsync(buffers.get(2)); // nobody waits for it
              buffers.get(3).copyFrom(Numbers.of(type, sync.rank(), 3, counts[3]));
              sync.average(buffers.get(3));
              assertBits(
                  Numbers.reduced(type, ReduceOp.AVERAGE, ranks, 3, counts[3]),
                  buffers.get(3),
                  type,
                  ReduceOp.AVERAGE);
              assertThrows(NullPointerException.class, () -> sync.averageAsync(null));
              assertThrows(
                  IllegalStateException.class,
                  () -> sync.grouped(() -> sync.averageAsync(buffers.get(0))));
              try (DeviceBuffer ints = sync.allocate(DataType.INT32, 4)) {
                assertThrows(IllegalArgumentException.class, () -> sync.averageAsync(ints));
              }
              buffers.forEach(DeviceBuffer::close);
              assertThrows(IllegalStateException.class, () -> sync.averageAsync(buffers.get(0)));
              sync.close();
              assertThrows(IllegalStateException.class, () -> sync.averageAsync(buffers.get(0)));
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void rowsOfATableHaveTheBitsOfItsAverage(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int width = 3;
              int[][] tables = {
                {0, 0}, {7, 0}, {7, 5}, {1_000, 40}, {5_000, 900}
              }; // rows, of a rank
              for (int[] table : tables) {
                Random random = new Random(31L * table[0] + sync.rank());
                int count = table[1] * (sync.rank() + 1) / ranks; // with two ranks or more: others
                long[] indices = random.longs(count, 0, Math.max(1, table[0])).toArray();
                float[] elements = new float[count * width];
                for (int i = 0; i < elements.length; i++) {
                  elements[i] = i % 10 == 0 ? -0f : (float) random.nextGaussian();
                }
                float[] whole = new float[table[0] * width];
                for (int i = 0; i < elements.length; i++) {
                  whole[(int) indices[i / width] * width + i % width] += elements[i];
                }
                boolean[] has = new boolean[table[0]];
                for (long[] others : indicesOf(sync, indices)) {
                  for (long index : others) {
                    has[(int) index] = true;
                  }
                }
                SparseRows average =
                    sync.average(new SparseRows(table[0], width, indices, elements));
                sync.average(whole);
                float[] found = average.elements();
                requireRows(has, whole, average.indices(), found);
                try (DeviceBuffer rows = sync.allocate(DataType.FLOAT32, elements.length)) {
                  rows.copyFrom(elements);
                  average = sync.average(new SparseRows(table[0], width, indices, rows));
                  Arrays.fill(found, Float.NaN);
                  average.buffer().copyTo(found);
                  requireRows(has, whole, average.indices(), found);
                }
              }
              SparseRows none = new SparseRows(5, 2 + sync.rank() % 2, new long[0], new float[0]);
              if (ranks > 1) {
                assertMismatch(
                    () -> sync.average(none),
                    "rank 0: tableRows=5, width=2",
                    "rank 1: tableRows=5, width=3");
              }
              assertThrows(NullPointerException.class, () -> sync.average((SparseRows) null));
              requireRowsRefused(sync);
              sync.barrier();
            });
  }

  private static void requireRows(
      boolean[] expected, float[] table, long[] indices, float[] elements) {
    int width = expected.length == 0 ? 1 : table.length / expected.length;
    int at = 0;
    for (int row = 0; row < expected.length; row++) {
      if (expected[row]) {
        assertEquals(row, indices[at]);
        for (int k = 0; k < width; k++) {
          assertEquals(
              Float.floatToRawIntBits(table[row * width + k]),
              Float.floatToRawIntBits(elements[at * width + k]));
        }
        at++;
      }
    }
    assertEquals(at, indices.length);
    assertEquals(at * width, elements.length);
  }

  /** Rows in buffers that cannot be averaged, on all ranks. */
  private static void requireRowsRefused(GradientSync sync) {
    long[] index = {0};
    DeviceBuffer row = sync.allocate(DataType.FLOAT32, 2);
    SparseRows rows = new SparseRows(3, 2, index, row);
    DeviceBuffer earlier = sync.average(rows).buffer();
    SparseRows again = new SparseRows(3, 2, index, earlier);
    assertThrows(IllegalArgumentException.class, () -> sync.average(again));
    row.close();
    assertThrows(IllegalStateException.class, () -> sync.average(rows));
    try (DeviceBuffer doubles = sync.allocate(DataType.FLOAT64, 2)) {
      assertThrows(IllegalArgumentException.class, () -> new SparseRows(3, 2, index, doubles));
    }
  }

  private static List<long[]> indicesOf(GradientSync sync, long[] own) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * own.length);
    bytes.asLongBuffer().put(own);
    return sync.communicator().allGather(bytes.array()).stream()
        .map(
            other -> {
              long[] indices = new long[other.length / 8];
              ByteBuffer.wrap(other).asLongBuffer().get(indices);
              return indices;
            })
        .toList();
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void anyThreadMayMakeTheFirstCall(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, ranks * 7L);
                  DeviceBuffer part = sync.allocate(DataType.FLOAT32, 7)) {
                buffer.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, ranks * 7));
                Thread other =
                    new Thread(
                        () -> {
                          sync.reduceScatter(buffer, part, ReduceOp.SUM);
                          sync.allReduce(buffer, ReduceOp.SUM);
                        });
                other.start();
                other.join();
                assertBits(
                    Numbers.reduced(DataType.FLOAT32, ReduceOp.SUM, ranks, 0, ranks * 7),
                    buffer,
                    DataType.FLOAT32,
                    ReduceOp.SUM);
                assertBits(
                    Numbers.reduced(DataType.FLOAT32, ReduceOp.SUM, ranks, sync.rank() * 7L, 7),
                    part,
                    DataType.FLOAT32,
                    ReduceOp.SUM);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("several")
  void failuresInTheBackgroundAreThrown(int ranks) {
    runner()
        .run(
            ranks,
            builder -> builder.requireFinite(true),
            sync -> {
              if (!looksFirst()) { // such failures break its sync
                return;
              }
              try (DeviceBuffer bad = sync.allocate(DataType.FLOAT32, 5).named("bad");
                  DeviceBuffer good = sync.allocate(DataType.FLOAT32, 5)) {
                bad.copyFrom(new float[] {1, sync.rank() == 1 ? Float.NaN : 2, 3, 4, 5});
                PendingAverage first = sync.averageAsync(bad);
                PendingAverage second = sync.averageAsync(good);
                second.await();
                for (int i = 0; i < 2; i++) {
                  String text = assertThrows(NotFiniteException.class, first::await).getMessage();
                  assertTrue(text.contains("\"bad\""), text);
                }
                sync.averageAsync(bad); // nobody waits for it, so the next call throws
                assertThrows(NotFiniteException.class, sync::barrier);
                sync.barrier();
                DeviceBuffer part = good.slice(0, sync.rank() == 0 ? 4 : 5);
                PendingAverage mismatch = sync.averageAsync(part);
                assertMismatch(mismatch::await, "rank 0: allReduce(FLOAT32[4]");
                sync.average(good);
                GradientSync whole = sync.split(0, sync.rank());
                GradientSync inner = whole.split(0, sync.rank());
                assertThrows(NotFiniteException.class, () -> inner.averageAsync(bad).await());
                inner.averageAsync(bad); // nobody waits for it, and no call follows
                inner.averageAsync(good).await();
                assertThrows(NotFiniteException.class, whole::close);
                assertThrows(IllegalStateException.class, whole::barrier); // it is closed
                whole.close();
                sync.average(good);
              }
            });
  }

  /** Arrays of about the same length share a buffer. */
  @ParameterizedTest
  @MethodSource("sizes")
  void arraysOfOtherLengthsDoNotMatch(int ranks) {
    runner()
        .run(
            ranks,
            b -> b.requireFinite(true),
            sync -> {
              float[] bad = new float[3_000];
              bad[2_999] = Float.NaN;
              assertThrows(NotFiniteException.class, () -> sync.average(bad));
              for (int length = 2_999; length > 2_990; length--) { // without what was in it before
                float[] array = new float[length];
                Arrays.fill(array, sync.rank() + length);
                sync.average(array);
                for (float element : array) {
                  assertEquals((ranks - 1) / 2f + length, element);
                }
                boolean odd = sync.rank() == ranks - 1;
                double[] other = new double[odd ? length : 2_999];
                if (ranks > 1 && length < 2_999) {
                  assertMismatch(
                      () -> sync.average(other),
                      "rank 0: allReduce(FLOAT64[2999], AVERAGE)",
                      "rank " + (ranks - 1) + ": allReduce(FLOAT64[" + length + "], AVERAGE)");
                } else {
                  sync.average(other);
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void registerKeepsElements(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT64;
              try (DeviceBuffer buffer = sync.allocate(type, 1001);
                  DeviceBuffer empty = sync.allocate(type, 0)) {
                buffer.copyFrom(Numbers.of(type, sync.rank(), 0, 1001));
                sync.register(buffer);
                sync.register(empty);
                assertBits(Numbers.of(type, sync.rank(), 0, 1001), buffer, type, null);
                sync.average(buffer);
                sync.register(buffer);
                sync.allReduce(buffer, ReduceOp.MAX); // all ranks have the same elements
                assertBits(
                    Numbers.reduced(type, ReduceOp.AVERAGE, ranks, 0, 1001),
                    buffer,
                    type,
                    ReduceOp.AVERAGE);
              }
              assertThrows(NullPointerException.class, () -> sync.register(null));
            });
  }

  /** Registration is a call like the others: all ranks make it, for the same kind of buffer. */
  @ParameterizedTest
  @MethodSource("sizes")
  void registrationsThatDifferThrowMismatch(int ranks) {
    if (ranks == 1) {
      return;
    }
    int last = ranks - 1;
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == last;
              String name = odd ? "bias" : "weight";
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 6);
                  DeviceBuffer named = sync.allocate(DataType.FLOAT32, 6).named(name)) {
                DeviceBuffer part = odd ? buffer.slice(0, 5) : buffer;
                assertMismatch(
                    () -> sync.register(part),
                    "rank 0: register(FLOAT32[6])",
                    "rank " + last + ": register(FLOAT32[5])");
                assertMismatch(
                    () -> sync.register(named),
                    "rank 0: register(FLOAT32[6] \"weight\")",
                    "rank " + last + ": register(FLOAT32[6] \"bias\")");
                assertMismatch(
                    () -> {
                      if (odd) {
                        sync.barrier();
                      } else {
                        sync.register(buffer);
                      }
                    },
                    "rank 0: register(FLOAT32[6])",
                    "rank " + last + ": barrier()");
                sync.register(buffer);
                sync.average(buffer); // the sync still works
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reducesManyShortLivedSlices(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.INT32;
              try (DeviceBuffer buffer = sync.allocate(type, 2000)) {
                for (int i = 0; i < 1200; i++) {
                  buffer.copyFrom(Numbers.of(type, sync.rank(), 0, 2000));
                  sync.allReduce(buffer.slice(i, 3), ReduceOp.SUM);
                }
                ByteBuffer expected = Numbers.of(type, sync.rank(), 0, 2000);
                expected.put(1199 * 4, Numbers.reduced(type, ReduceOp.SUM, ranks, 1199, 3), 0, 12);
                assertBits(expected, buffer, type, ReduceOp.SUM);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void broadcastsFromEveryRoot(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int root = 0; root < ranks; root++) {
                for (int count : COUNTS) {
                  try (DeviceBuffer buffer = sync.allocate(type, count)) {
                    buffer.copyFrom(Numbers.of(type, sync.rank(), 0, count));
                    sync.broadcast(buffer, root);
                    assertBits(Numbers.of(type, root, 0, count), buffer, type, null);
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void callsOfSeveralSyncsDoNotMix(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (GradientSync other = GradientSync.builder().reducer(sync.reducer()).create();
                  DeviceBuffer a = sync.allocate(DataType.INT64, 1000);
                  DeviceBuffer b = other.allocate(DataType.INT64, 1000)) {
                a.copyFrom(Numbers.of(DataType.INT64, sync.rank(), 0, 1000));
                b.copyFrom(Numbers.of(DataType.INT64, sync.rank(), 5, 1000));
                other.allReduce(b, ReduceOp.SUM);
                sync.allReduce(a, ReduceOp.MAX);
                assertBits(
                    Numbers.reduced(DataType.INT64, ReduceOp.MAX, ranks, 0, 1000),
                    a,
                    DataType.INT64,
                    ReduceOp.MAX);
                assertBits(
                    Numbers.reduced(DataType.INT64, ReduceOp.SUM, ranks, 5, 1000),
                    b,
                    DataType.INT64,
                    ReduceOp.SUM);
                assertThrows(IllegalArgumentException.class, () -> sync.allReduce(b, ReduceOp.SUM));
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void mismatchedCallsThrowOnAllRanksAndKeepData(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              if (ranks == 1) {
                return;
              }
              int last = ranks - 1;
              boolean odd = sync.rank() == last;
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5000);
                  DeviceBuffer doubles = sync.allocate(DataType.FLOAT64, 5000)) {
                buffer.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, 5000));
                assertMismatch(
                    () -> sync.average(odd ? buffer.slice(0, 4999) : buffer),
                    "rank 0: allReduce(FLOAT32[5000], AVERAGE)",
                    "rank " + last + ": allReduce(FLOAT32[4999], AVERAGE)");
                assertMismatch(
                    () -> sync.average(odd ? doubles : buffer),
                    "rank " + last + ": allReduce(FLOAT64[5000]");
                assertMismatch(
                    () -> sync.allReduce(buffer, odd ? ReduceOp.MAX : ReduceOp.MIN),
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
                assertMismatch(
                    () -> sync.broadcast(buffer, odd ? 1 : 0),
                    "rank " + last + ": broadcast(FLOAT32[5000], root=1)");
                assertMismatch(
                    () -> {
                      if (odd) {
                        sync.barrier();
                      } else {
                        sync.average(buffer);
                      }
                    },
                    "rank " + last + ": barrier()");
                assertBits(
                    Numbers.of(DataType.FLOAT32, sync.rank(), 0, 5000),
                    buffer,
                    DataType.FLOAT32,
                    null);
                sync.average(buffer); // the sync still works
                assertBits(
                    Numbers.reduced(DataType.FLOAT32, ReduceOp.AVERAGE, ranks, 0, 5000),
                    buffer,
                    DataType.FLOAT32,
                    ReduceOp.AVERAGE);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void mismatchMessageShowsBufferNames(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              if (ranks == 1) {
                return;
              }
              String name =
                  sync.rank() == 1 ? "größer als achtundvierzig Bytes: äääääääääääääää" : "w";
              int count = sync.rank() == 1 ? 5 : 6;
              try (DeviceBuffer whole = sync.allocate(DataType.FLOAT32, 8).named(name);
                  DeviceBuffer slice = whole.slice(1, count)) {
                assertEquals(name, slice.name());
                assertMismatch(
                    () -> sync.average(slice),
                    "rank 0: allReduce(FLOAT32[6] \"w\" at offset 1, AVERAGE)",
                    "rank 1: allReduce(FLOAT32[5] \"größer als acht...äääääääää #",
                    "\" at offset 1, AVERAGE)");
              }
            });
  }

  /** The buffers have the same type and count, so only their names differ. */
  @ParameterizedTest
  @MethodSource("sizes")
  void differentBufferNamesThrowMismatch(int ranks) {
    if (ranks == 1) {
      return;
    }
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              try (DeviceBuffer bias = sync.allocate(DataType.FLOAT32, 3).named("bias");
                  DeviceBuffer scale = sync.allocate(DataType.FLOAT32, 3).named("scale");
                  DeviceBuffer plain = sync.allocate(DataType.FLOAT32, 3);
                  DeviceBuffer unnamed = sync.allocate(DataType.FLOAT32, 3);
                  DeviceBuffer own = sync.allocate(DataType.FLOAT32, 3).named("own")) {
                DeviceBuffer half = odd ? plain : own; // a buffer without a name matches any
                half.copyFrom(new float[] {sync.rank(), sync.rank(), sync.rank()});
                sync.allReduce(half, ReduceOp.MAX);
                float[] last = new float[3];
                half.copyTo(last);
                assertArrayEquals(new float[] {ranks - 1, ranks - 1, ranks - 1}, last);
                // With three ranks one gives no name. It matches both others, and has to throw,
                // too.
                boolean gives = ranks == 2 || sync.rank() > 0;
                DeviceBuffer mine = odd ? scale : gives ? bias : unnamed;
                String name = ranks == 2 ? " \"bias\"" : "";
                assertMismatch(
                    () -> sync.average(mine),
                    "rank 0: allReduce(FLOAT32[3]" + name + ", AVERAGE)",
                    "rank " + (ranks - 1) + ": allReduce(FLOAT32[3] \"scale\", AVERAGE)");
              }
            });
  }

  /**
   * The names are longer than what the ranks send of them, and look the same where they are
   * shortened.
   */
  @ParameterizedTest
  @MethodSource("sizes")
  void differentLongBufferNamesThrowMismatch(int ranks) {
    if (ranks == 1) {
      return;
    }
    String norm = "model.decoder.layers.10.encoder_attn_layer_norm.";
    String[][] pairs = {
      {norm + "weight", norm + "bias"},
      {norm + "a." + norm + norm, norm + "b." + norm + norm},
    };
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              for (String[] pair : pairs) {
                try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 3).named(pair[0]);
                    DeviceBuffer b = sync.allocate(DataType.FLOAT32, 3).named(pair[1])) {
                  a.copyFrom(new float[] {1, 1, 1});
                  b.copyFrom(new float[] {100, 100, 100});
                  DeviceBuffer mine = odd ? b : a;
                  String message =
                      assertThrows(MismatchedCallException.class, () -> sync.average(mine))
                          .getMessage();
                  assertEquals(2, asked(message, ranks).distinct().count(), message);
                  sync.average(a);
                  float[] ones = new float[3];
                  a.copyTo(ones);
                  assertArrayEquals(new float[] {1, 1, 1}, ones);
                }
              }
            });
  }

  /** Returns what each rank called, from the table in an error message. */
  private static Stream<String> asked(String message, int ranks) {
    return Stream.iterate(0, rank -> rank + 1)
        .limit(ranks)
        .map(rank -> message.split("rank " + rank + ": ")[1].split("\n")[0]);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void differentSlicesOfNamedBufferThrowMismatch(int ranks) {
    if (ranks == 1) {
      return;
    }
    int last = ranks - 1;
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == last;
              try (DeviceBuffer whole = sync.allocate(DataType.FLOAT32, 12).named("w");
                  DeviceBuffer low = whole.slice(0, 6);
                  DeviceBuffer high = whole.slice(6, 6);
                  DeviceBuffer inner = high.slice(3, 2);
                  DeviceBuffer ours = low.slice(3, 2);
                  DeviceBuffer a = whole.slice(8, 3).named("a");
                  DeviceBuffer other = whole.slice(9, 3).named("a")) {
                assertMismatch(
                    () -> sync.average(odd ? high : low),
                    "rank 0: allReduce(FLOAT32[6] \"w\", AVERAGE)",
                    "rank " + last + ": allReduce(FLOAT32[6] \"w\" at offset 6, AVERAGE)");
                assertMismatch(
                    () -> sync.broadcast(odd ? inner : ours, 0),
                    "rank 0: broadcast(FLOAT32[2] \"w\" at offset 3, root=0)",
                    "rank " + last + ": broadcast(FLOAT32[2] \"w\" at offset 9, root=0)");
                sync.average(odd ? other : a); // both views have the name "a"
              }
            });
  }

  /** The interrupted rank has joined the call, but its data may be gone when the others arrive. */
  @ParameterizedTest
  @MethodSource("sizes")
  void interruptedRankIsNamed(int ranks) {
    if (ranks == 1) {
      return;
    }
    int odd = ranks - 1;
    runner()
        .run(
            ranks,
            b -> b.timeout(Duration.ofSeconds(20)),
            sync -> {
              try (GradientSync other = GradientSync.builder().reducer(sync.reducer()).create();
                  DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 70_001)) {
                boolean own = sync.rank() == odd;
                if (own) {
                  Thread.currentThread().interrupt();
                } else {
                  other.communicator().barrier(); // returns once the interrupted rank has thrown
                }
                String message = lossIn(sync, buffer);
                assertEquals(own, Thread.interrupted());
                if (own) {
                  other.communicator().barrier();
                }
                // with three ranks, the others may name the first rank that noticed
                if (own || ranks == 2) {
                  assertTrue(message.contains(own ? "interrupted" : "rank 1 "), message);
                }
                assertFalse(message.contains("/dev/shm"), message);
              }
            });
  }

  /** The late rank's message gives the reason, not only that the others gave up. */
  @ParameterizedTest
  @MethodSource("sizes")
  void lateRankLearnsThatOthersTimedOut(int ranks) {
    if (ranks == 1 || ranks > 3) {
      return; // each size takes a whole time-out
    }
    runner()
        .run(
            ranks,
            b -> b.timeout(Duration.ofSeconds(3)).set("reports", "off"),
            sync -> {
              try (GradientSync other = GradientSync.builder().reducer(sync.reducer()).create();
                  DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 70_001)) {
                boolean late = sync.rank() == ranks - 1;
                if (late) {
                  other.communicator().barrier(); // returns once the others have given up
                }
                String message = lossIn(sync, buffer);
                assertTrue(message.contains("timed out: rank " + (ranks - 1) + " ("), message);
                assertEquals(late, message.contains(" gave up "), message);
                if (!late) {
                  other.communicator().barrier();
                }
              }
            });
  }

  /**
   * A reducer that moves data before the ranks have compared their calls has to restore it. The
   * buffers were reduced before. One has several chunks; in the other some ranks own no element.
   */
  @ParameterizedTest
  @MethodSource("sizes")
  void mismatchesOnReusedBuffersKeepData(int ranks) {
    if (ranks == 1 || !looksFirst()) {
      return; // with reducers that do not block the host, a mismatch breaks the sync
    }
    int many = 300_001;
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer large = sync.allocate(DataType.INT64, many);
                  DeviceBuffer small = sync.allocate(DataType.FLOAT32, 3)) {
                long[] numbers = new long[many];
                Arrays.setAll(numbers, i -> (long) i * (sync.rank() + 1));
                large.copyFrom(numbers);
                sync.allReduce(large, ReduceOp.MIN); // the same on all ranks from now on
                large.copyTo(numbers);
                small.copyFrom(new float[] {1, 2, 3});
                sync.average(small);
                boolean odd = sync.rank() == ranks - 1;
                for (int i = 0; i < 3; i++) {
                  assertMismatch(() -> sync.allReduce(odd ? small : large, ReduceOp.SUM));
                  assertMismatch(() -> sync.allReduce(large, odd ? ReduceOp.MIN : ReduceOp.MAX));
                  assertMismatch(
                      () -> {
                        if (odd) {
                          sync.barrier();
                        } else {
                          sync.average(small);
                        }
                      });
                }
                long[] after = new long[many];
                large.copyTo(after);
                assertArrayEquals(numbers, after);
                sync.allReduce(large, ReduceOp.SUM);
                large.copyTo(after);
                Arrays.setAll(numbers, i -> numbers[i] * ranks);
                assertArrayEquals(numbers, after);
                float[] few = new float[3];
                sync.average(small);
                small.copyTo(few);
                assertArrayEquals(new float[] {1, 2, 3}, few);
              }
            });
  }

  /**
   * {@return whether the reducer finds a gradient that is not finite before it changes any element;
   * false for reducers that check while they reduce}
   */
  protected boolean looksFirst() {
    return true;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void nonFiniteGradientIsNamed(int ranks) {
    runner()
        .run(
            ranks,
            options -> options.requireFinite(true),
            sync -> {
              int last = ranks - 1;
              int count = 100_003;
              for (DataType type : DataType.values()) {
                try (DeviceBuffer whole = sync.allocate(type, count + 1).named("w");
                    DeviceBuffer buffer = whole.slice(1, count)) {
                  sync.allReduce(buffer, ReduceOp.SUM); // zeros are finite
                  int index = 77_777;
                  ByteBuffer values = Numbers.memory(type, count);
                  for (int i = 0; i < values.capacity(); i++) {
                    values.put(i, (byte) (i % 60)); // finite in every type
                  }
                  if (sync.rank() == last) {
                    setToInfinity(values, type, index);
                  }
                  buffer.copyFrom(values);
                  if (!type.isFloatingPoint()) {
                    sync.allReduce(buffer, ReduceOp.SUM);
                    continue;
                  }
                  NotFiniteException e =
                      assertThrows(
                          NotFiniteException.class,
                          () -> {
                            sync.allReduce(buffer, ReduceOp.MAX);
                            buffer.copyTo(Numbers.memory(type, count));
                          });
                  String message = e.getMessage();
                  assertTrue(message.contains("rank " + last + ": "), message);
                  assertTrue(message.contains(type + "[" + count + "] \"w\""), message);
                  assertTrue(message.contains("index=" + index), message);
                  if (looksFirst()) {
                    assertBits(values, buffer, type, null);
                  }
                  sync.barrier();
                }
              }
            });
  }

  private static void setToInfinity(ByteBuffer values, DataType type, int index) {
    switch (type) {
      case FLOAT16 -> values.putShort(2 * index, (short) 0xfc00);
      case BFLOAT16 -> values.putShort(2 * index, (short) 0x7fc1); // a NaN
      case FLOAT32 -> values.putFloat(4 * index, Float.NEGATIVE_INFINITY);
      case FLOAT64 -> values.putDouble(8 * index, Double.NaN);
      default -> {}
    }
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void rejectsInvalidArguments(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DeviceBuffer ints = sync.allocate(DataType.INT32, 4);
              DeviceBuffer floats = sync.allocate(DataType.FLOAT32, 4);
              IllegalArgumentException e =
                  assertThrows(IllegalArgumentException.class, () -> sync.average(ints));
              assertTrue(e.getMessage().contains("type=INT32"), e.getMessage());
              assertThrows(NullPointerException.class, () -> sync.average((DeviceBuffer) null));
              assertThrows(NullPointerException.class, () -> sync.allReduce(floats, null));
              assertThrows(NullPointerException.class, () -> sync.broadcast(null, 0));
              assertThrows(IllegalArgumentException.class, () -> sync.broadcast(floats, ranks));
              assertThrows(IllegalArgumentException.class, () -> sync.broadcast(floats, -1));
              assertThrows(IllegalArgumentException.class, () -> sync.allocate(DataType.INT32, -1));
              floats.close();
              assertThrows(IllegalStateException.class, () -> sync.average(floats));
              sync.barrier();
              sync.close();
              sync.close();
              assertThrows(IllegalStateException.class, () -> sync.allReduce(ints, ReduceOp.SUM));
              assertThrows(IllegalStateException.class, () -> sync.allocate(DataType.INT32, 1));
              assertThrows(IllegalStateException.class, sync::barrier);
              assertThrows(IllegalStateException.class, () -> ints.copyTo(new int[4]));
              ints.close();
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allocatesNothingWhenWarm(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 200_000);
                  DeviceBuffer blocks = sync.allocate(DataType.FLOAT32, 999L * ranks);
                  DeviceBuffer others = sync.allocate(DataType.FLOAT32, 999L * ranks);
                  DeviceBuffer block = sync.allocate(DataType.FLOAT32, 999)) {
                assertAllocatesNothing(sync, "average", () -> sync.average(buffer));
                assertAllocatesNothing(sync, "broadcast", () -> sync.broadcast(buffer, ranks - 1));
                assertAllocatesNothing(sync, "allGather", () -> sync.allGather(block, blocks));
                assertAllocatesNothing(
                    sync, "reduceScatter", () -> sync.reduceScatter(blocks, block, ReduceOp.SUM));
                assertAllocatesNothing(sync, "reduce", () -> sync.reduce(block, ReduceOp.SUM, 0));
                assertAllocatesNothing(sync, "allToAll", () -> sync.allToAll(blocks, others));
              }
            });
  }

  /** All ranks make as many calls, until a round of each has allocated nothing. */
  private static void assertAllocatesNothing(GradientSync sync, String name, Runnable call) {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    // The smallest object per call would be 800 bytes. Reading the counter allocates a little, and
    // long waits and the compiler do in some rounds.
    long most = 700;
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 20 && sync.communicator().any(least >= most); round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 50; i++) {
        call.run();
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertTrue(least < most, "bytes allocated in 50 calls of " + name + ": " + least);
  }

  /** Arrays of many lengths take no new buffers, which a reducer would have to prepare. */
  @ParameterizedTest
  @MethodSource("sizes")
  void allocatesLittleForArraysOfManyLengths(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              com.sun.management.ThreadMXBean threads =
                  (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
              long arrays = 100 * 1_054 * Float.BYTES;
              long most = arrays + 100 * 1_000;
              long allocated = most;
              for (int round = 0;
                  round < 8 && sync.communicator().any(allocated >= most);
                  round++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int length = 1_000; length < 1_100; length++) {
                  sync.average(new float[length]);
                }
                allocated = Math.min(allocated, threads.getCurrentThreadAllocatedBytes() - before);
              }
              assertTrue(allocated < most, "bytes allocated in 100 averages: " + allocated);
            });
  }

  /** Returns what an average throws, at the latest when the host waits for its result. */
  private static String lossIn(GradientSync sync, DeviceBuffer buffer) {
    return assertThrows(
            RankLostException.class,
            () -> {
              sync.average(buffer);
              buffer.copyTo(new float[(int) buffer.count()]);
            })
        .getMessage();
  }

  private static void assertMismatch(Runnable call, String... parts) {
    MismatchedCallException e = assertThrows(MismatchedCallException.class, call::run);
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  private static void assertBits(
      ByteBuffer expected, DeviceBuffer buffer, DataType type, ReduceOp op) {
    int count = (int) buffer.count();
    ByteBuffer actual = Numbers.memory(type, count);
    buffer.copyTo(actual);
    int difference = expected.mismatch(actual);
    if (difference >= 0) {
      int index = difference / type.sizeInBytes();
      throw new AssertionError(
          "wrong bits: type=%s, op=%s, count=%s, index=%s, expected=%s, actual=%s"
              .formatted(
                  type, op, count, index, hex(expected, type, index), hex(actual, type, index)));
    }
    assertEquals(expected.remaining(), actual.remaining());
  }

  private static String hex(ByteBuffer memory, DataType type, int index) {
    return switch (type.sizeInBytes()) {
      case 2 -> Integer.toHexString(memory.getShort(index * 2) & 0xffff);
      case 4 -> Integer.toHexString(memory.getInt(index * 4));
      default -> Long.toHexString(memory.getLong(index * 8));
    };
  }
}

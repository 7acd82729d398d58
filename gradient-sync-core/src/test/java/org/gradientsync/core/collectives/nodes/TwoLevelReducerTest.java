package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks as threads that take each other for ranks of other nodes. */
class TwoLevelReducerTest {
  private static final Settings NONE = new Settings(Map.of());
  private static final Settings ANY = new Settings(Map.of("order", "any"));
  private static final int CHUNK_BYTES = 1024;
  private static final TwoLevelSizes BY_SUMS = new TwoLevelSizes(false, CHUNK_BYTES, 0, 0, 0);
  private static final TwoLevelSizes BY_HALVING =
      new TwoLevelSizes(false, CHUNK_BYTES, Integer.MAX_VALUE, 0, 0);
  private static final TwoLevelSizes BY_EXCHANGE =
      new TwoLevelSizes(false, CHUNK_BYTES, 0, Integer.MAX_VALUE, 0);

  private static final TwoLevelSizes DIRECT =
      new TwoLevelSizes(false, CHUNK_BYTES, 0, 0, Integer.MAX_VALUE);

  interface Calls {
    void make(ProcessGroup group, HostDevice device, Reducer reducer, GradientSync own)
        throws Exception;
  }

  /**
   * @param nodes the node of each rank
   */
  static void run(int[] nodes, TwoLevelSizes sizes, Settings settings, Calls calls) {
    run(nodes.length, () -> new OtherWorld(rank -> nodes[rank]), sizes, settings, calls);
  }

  static void run(
      int ranks, Supplier<OtherWorld> worlds, TwoLevelSizes sizes, Settings settings, Calls calls) {
    run(ranks, worlds, sizes, rank -> settings, calls);
  }

  /**
   * @param ofRank each rank's settings
   */
  static void run(
      int ranks,
      Supplier<OtherWorld> worlds,
      TwoLevelSizes sizes,
      IntFunction<Settings> ofRank,
      Calls calls) {
    LocalRanks.run(
        ranks,
        own -> {
          Settings settings = ofRank.apply(own.rank());
          try (ProcessGroup world = ProcessGroup.world(worlds.get());
              ProcessGroup group = world.split(0, world.rank(), settings.timeouts());
              HostDevice device = new HostDevice()) {
            SyncContext context =
                new SyncContext(
                    group, new GroupCommunicator(group), device, settings, new OwnParts());
            try (Reducer reducer = new TwoLevelReducerProvider().create(context, sizes)) {
              calls.make(group, device, reducer, own);
            }
          }
        });
  }

  static Stream<Arguments> placements() {
    return Stream.of(new int[] {0, 1, 1}, new int[] {7, 7, 2, 2}, new int[] {0, 0, 1, 2, 2, 2})
        .map(Arguments::of);
  }

  @ParameterizedTest
  @MethodSource("placements")
  void bitsAreThoseOfTheSumInRankOrder(int[] nodes) {
    requireRankOrder(nodes, BY_SUMS);
    requireRankOrder(nodes, BY_EXCHANGE);
  }

  private static void requireRankOrder(int[] nodes, TwoLevelSizes sizes) {
    run(
        nodes,
        sizes,
        NONE,
        (group, device, reducer, own) -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              if (op.isDefinedFor(type)) {
                for (int count : new int[] {1, 5, 5001}) {
                  compare(type, op, count, device, reducer, own);
                }
              }
            }
          }
        });
  }

  /** So many nodes that contributions pass other nodes on their way. */
  @Test
  void bitsOfManyNodesAreThoseOfTheSumInRankOrder() {
    int[] nodes = {0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 10, 11, 12, 13};
    run(
        nodes,
        BY_EXCHANGE,
        NONE,
        (group, device, reducer, own) -> {
          for (int count : new int[] {3, 200, 1500}) {
            compare(DataType.FLOAT32, ReduceOp.SUM, count, device, reducer, own);
            compare(DataType.BFLOAT16, ReduceOp.AVERAGE, count, device, reducer, own);
          }
        });
  }

  /** Compares with the reducer of threads. The elements lie at an odd offset. */
  static void compare(
      DataType type, ReduceOp op, int count, HostDevice device, Reducer reducer, GradientSync own) {
    try (DeviceBuffer whole = device.allocate(type, count + 3L);
        DeviceBuffer buffer = whole.slice(1, count);
        DeviceBuffer reference = own.allocate(type, count)) {
      for (int call = 0; call < 2; call++) {
        ByteBuffer elements = random(type, count, new Random(31L * own.rank() + call));
        write(buffer, elements);
        write(reference, elements);
        reducer.run(CollectiveCall.allReduce(buffer, op));
        own.allReduce(reference, op);
        assertArrayEquals(
            bytes(reference), bytes(buffer), () -> type + " " + op + " count=" + count);
      }
    }
  }

  /** Any bits: NaN, infinities and denormals among them; and numbers whose sum depends on order. */
  static ByteBuffer random(DataType type, int count, Random random) {
    ByteBuffer elements =
        ByteBuffer.allocateDirect(count * type.sizeInBytes()).order(ByteOrder.nativeOrder());
    for (int i = 0; i < count; i++) {
      boolean any = random.nextInt(16) == 0;
      int at = i * type.sizeInBytes();
      switch (type) {
        case FLOAT32 ->
            elements.putInt(
                at,
                any ? random.nextInt() : Float.floatToRawIntBits((float) random.nextGaussian()));
        case FLOAT64 ->
            elements.putLong(
                at, any ? random.nextLong() : Double.doubleToRawLongBits(random.nextGaussian()));
        case INT32 -> elements.putInt(at, random.nextInt());
        case INT64 -> elements.putLong(at, random.nextLong());
        default -> elements.putShort(at, (short) random.nextInt());
      }
    }
    return elements;
  }

  static void write(DeviceBuffer buffer, ByteBuffer elements) {
    buffer.copyFrom(elements.duplicate().order(ByteOrder.nativeOrder()));
  }

  static byte[] bytes(DeviceBuffer buffer) {
    ByteBuffer memory =
        ByteBuffer.allocateDirect((int) buffer.sizeInBytes()).order(ByteOrder.nativeOrder());
    buffer.copyTo(memory);
    byte[] bytes = new byte[memory.capacity()];
    memory.get(0, bytes);
    return bytes;
  }

  static Stream<Arguments> placementsAndSizes() {
    int[][] placements = {
      {0, 1, 1}, {7, 7, 2, 2}, {0, 0, 1, 2, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 1, 2, 3, 4}
    };
    return Stream.of(placements)
        .flatMap(nodes -> inAnyOrder().map(sizes -> Arguments.of(nodes, sizes)));
  }

  static Stream<TwoLevelSizes> inAnyOrder() {
    return Stream.of(BY_SUMS, BY_HALVING, DIRECT);
  }

  /** With numbers whose sum is exact in any order. */
  @ParameterizedTest
  @MethodSource("placementsAndSizes")
  void sumsInAnyOrderAreRight(int[] nodes, TwoLevelSizes sizes) {
    run(
        nodes,
        sizes,
        ANY,
        (group, device, reducer, own) -> {
          for (int count : new int[] {1, 3, 300, 5000, 20_001}) {
            for (int call = 0; call < 3; call++) {
              requireExactAverage(count, call, group, device, reducer);
            }
          }
        });
  }

  /** What does not depend on the order: minima, maxima and integers. */
  @ParameterizedTest
  @MethodSource("placements")
  void otherReductionsInAnyOrderHaveTheSameBits(int[] nodes) {
    requireSameBits(nodes, BY_HALVING);
    requireSameBits(nodes, DIRECT);
  }

  private static void requireSameBits(int[] nodes, TwoLevelSizes sizes) {
    run(
        nodes,
        sizes,
        ANY,
        (group, device, reducer, own) -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              boolean exact = op == ReduceOp.MIN || op == ReduceOp.MAX;
              boolean integer = type == DataType.INT32 || type == DataType.INT64;
              if (op.isDefinedFor(type) && (exact || integer)) {
                for (int count : new int[] {2, 3001}) {
                  compare(type, op, count, device, reducer, own);
                }
              }
            }
          }
        });
  }

  private static void requireExactAverage(
      int count, int call, ProcessGroup group, HostDevice device, Reducer reducer) {
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
      int size = group.size();
      float[] values = new float[count];
      float[] expected = new float[count];
      for (int i = 0; i < count; i++) {
        values[i] = size * (i % 1000) + group.rank() * (call + 1);
        expected[i] = size * (i % 1000) + (size - 1) * (call + 1) / 2f;
      }
      buffer.copyFrom(values);
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
      buffer.copyTo(values);
      assertArrayEquals(expected, values);
    }
  }

  /** Numbers whose sum depends on the order, twice. */
  @ParameterizedTest
  @MethodSource("inAnyOrder")
  void sumsInAnyOrderHaveTheSameBitsOnAllRanksAndInEachRun(TwoLevelSizes sizes) {
    float[][] results = new float[12][];
    for (int run = 0; run < 2; run++) {
      int first = 6 * run;
      run(
          new int[] {0, 0, 1, 1, 2, 2},
          sizes,
          ANY,
          (group, device, reducer, own) -> {
            try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 20_001)) {
              buffer.copyFrom(random(DataType.FLOAT32, 20_001, new Random(group.rank())));
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
              float[] values = new float[20_001];
              buffer.copyTo(values);
              results[first + group.rank()] = values;
            }
          });
    }
    for (float[] result : results) {
      assertArrayEquals(results[0], result);
    }
  }

  @Test
  void buffersInPrivateMemoryAndSmallOnesAreReducedToo() {
    run(
        new int[] {0, 0, 1, 1},
        TwoLevelSizes.USUAL,
        NONE,
        (group, device, reducer, own) -> {
          float[] mine = new float[10_000];
          Arrays.fill(mine, group.rank());
          try (DeviceBuffer shared = device.allocate(DataType.FLOAT32, mine.length);
              DeviceBuffer wrapped =
                  group.rank() == 2
                      ? device.wrap(
                          DataType.FLOAT32,
                          ByteBuffer.allocateDirect(mine.length * 4).order(ByteOrder.nativeOrder()))
                      : shared;
              DeviceBuffer small = device.allocate(DataType.FLOAT32, 7)) {
            for (DeviceBuffer buffer : new DeviceBuffer[] {wrapped, small, shared}) {
              float[] values = Arrays.copyOf(mine, (int) buffer.count());
              buffer.copyFrom(values);
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
              buffer.copyTo(values);
              for (float value : values) {
                assertEquals(1.5f, value);
              }
            }
          }
        });
  }

  @Test
  void differentCallsAreNamedAndChangeNothing() {
    run(
        new int[] {0, 0, 1, 1},
        BY_SUMS,
        NONE,
        (group, device, reducer, own) -> requireMismatch(group, device, reducer));
  }

  /** The last of four ranks asks for fewer elements. */
  static void requireMismatch(ProcessGroup group, HostDevice device, Reducer reducer) {
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 5000)) {
      float[] before = new float[5000];
      Arrays.fill(before, group.rank());
      buffer.copyFrom(before);
      DeviceBuffer part = group.rank() == 3 ? buffer.slice(0, 4000) : buffer;
      String message =
          assertThrows(
                  MismatchedCallException.class,
                  () -> reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM)))
              .getMessage();
      assertTrue(message.contains("rank 3: allReduce(FLOAT32[4000], SUM)"), message);
      assertTrue(message.contains("rank 0: allReduce(FLOAT32[5000], SUM)"), message);
      float[] after = new float[5000];
      buffer.copyTo(after);
      assertArrayEquals(before, after);
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.MAX));
      buffer.copyTo(after);
      assertEquals(3, after[4999]);
    }
  }

  @Test
  void onlyRanksThatFollowOneAnotherCanUseIt() {
    assertTrue(layout(0, 0, 1, 1).isContiguous());
    assertTrue(layout(5, 5, 1, 0, 0).isContiguous());
    assertFalse(layout(0, 1, 0, 1).isContiguous());
  }

  private static NodeLayout layout(int... nodes) {
    NodeLayout[] layout = new NodeLayout[1];
    LocalRanks.run(
        nodes.length,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new OtherWorld(rank -> nodes[rank]))) {
            if (world.rank() == 0) {
              layout[0] = new NodeLayout(world.ranks());
            }
            own.barrier();
          }
        });
    return layout[0];
  }
}

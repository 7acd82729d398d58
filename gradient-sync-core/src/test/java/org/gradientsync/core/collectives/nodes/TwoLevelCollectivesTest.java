package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.Stream;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Broadcast, all-gather, reduce-scatter and all-to-all between threads that stand for ranks of
 * nodes.
 */
class TwoLevelCollectivesTest {
  private static final Kind[] KINDS = {Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL};
  private static final Kind[] MOVES = {Kind.ALL_GATHER, Kind.ALL_TO_ALL};
  private static final int CHUNK_BYTES = 1024;
  private static final Set<Integer> DATA = Set.of(Channel.SCATTER, Channel.GATHER, Channel.DATA);
  private static final TwoLevelSizes LARGER = new TwoLevelSizes(false, 8 * CHUNK_BYTES, 0, 0, 0);
  private static final TwoLevelSizes SIZES = new TwoLevelSizes(false, CHUNK_BYTES, 0, 0, 0);
  private static final TwoLevelSizes BY_HALVING =
      new TwoLevelSizes(false, CHUNK_BYTES, Integer.MAX_VALUE, 0, 0);
  private static final TwoLevelSizes BY_EXCHANGE =
      new TwoLevelSizes(false, CHUNK_BYTES, 0, Integer.MAX_VALUE, 0);

  private static Settings settings(SumOrder order) {
    return new Settings(Map.of("order", order.name().toLowerCase(Locale.ROOT)));
  }

  private static int[] nodes(int count, int perNode) {
    int[] nodes = new int[count * perNode];
    Arrays.setAll(nodes, rank -> rank / perNode);
    return nodes;
  }

  /** Input and output of a call, the ranks' own blocks of them in place if that is allowed. */
  private static CollectiveCall call(
      Kind kind, boolean inPlace, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int rank) {
    if (kind == Kind.BROADCAST) {
      return CollectiveCall.broadcast(out, 2);
    }
    long block = Math.min(in.count(), out.count());
    return new CollectiveCall(
        kind,
        inPlace && kind == Kind.ALL_GATHER ? out.slice(rank * block, block) : in,
        inPlace && kind == Kind.REDUCE_SCATTER ? in.slice(rank * block, block) : out,
        kind.reduces() ? op : null,
        RankGroup.NO_RANK);
  }

  /**
   * Compares two calls, of which the second one may be in place, with the collective of threads.
   * The elements lie at odd offsets.
   */
  private static void compare(
      Kind kind,
      DataType type,
      ReduceOp op,
      int block,
      HostDevice device,
      Reducer reducer,
      GradientSync own) {
    int size = own.size();
    int inCount = block * kind.inputBlocks(size);
    int outCount = block * kind.outputBlocks(size);
    try (DeviceBuffer wholeIn = device.allocate(type, inCount + 3);
        DeviceBuffer wholeOut = device.allocate(type, outCount + 3);
        DeviceBuffer in = wholeIn.slice(1, inCount);
        DeviceBuffer out = wholeOut.slice(1, outCount);
        DeviceBuffer sameIn = own.allocate(type, inCount);
        DeviceBuffer expected = own.allocate(type, outCount)) {
      for (int round = 0; round < 2; round++) {
        ByteBuffer elements =
            TwoLevelReducerTest.random(type, inCount, new Random(31L * own.rank() + round));
        CollectiveCall call = call(kind, round > 0, in, out, op, own.rank());
        TwoLevelReducerTest.write(call.in(), elements);
        TwoLevelReducerTest.write(sameIn, elements);
        for (int run = 0; run < (call.out() == out ? 2 : 1); run++) {
          reducer.run(call);
        }
        switch (kind) {
          case ALL_GATHER -> own.allGather(sameIn, expected);
          case REDUCE_SCATTER -> own.reduceScatter(sameIn, expected, op);
          default -> own.allToAll(sameIn, expected);
        }
        assertArrayEquals(
            TwoLevelReducerTest.bytes(expected),
            TwoLevelReducerTest.bytes(call.out()),
            () -> kind + " " + type + " " + op + " block=" + block);
      }
    }
  }

  static Stream<Arguments> nodesAndWays() {
    return Stream.of(nodes(2, 1), nodes(2, 2), nodes(3, 2), nodes(5, 1))
        .flatMap(nodes -> Stream.of(SIZES, BY_EXCHANGE).map(sizes -> Arguments.of(nodes, sizes)));
  }

  @ParameterizedTest
  @MethodSource("nodesAndWays")
  void bitsAreThoseOfThreads(int[] nodes, TwoLevelSizes sizes) {
    TwoLevelReducerTest.run(
        nodes,
        sizes,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          for (int block : new int[] {0, 1, 3001}) {
            for (Kind kind : KINDS) {
              compare(kind, DataType.FLOAT32, ReduceOp.SUM, block, device, reducer, own);
            }
          }
          for (DataType type : DataType.values()) {
            compare(Kind.ALL_GATHER, type, null, 2500, device, reducer, own);
            compare(Kind.ALL_TO_ALL, type, null, 1001, device, reducer, own);
            for (ReduceOp op : ReduceOp.values()) {
              if (op.isDefinedFor(type)) {
                compare(Kind.REDUCE_SCATTER, type, op, 1001, device, reducer, own);
              }
            }
          }
        });
  }

  /** Blocks that are too large to travel with the calls. */
  @ParameterizedTest
  @CsvSource({"64, 2", "70, 1"})
  void smallBlocksOfManyNodesAreGatheredInRounds(int nodes, int perNode) {
    int block = 600;
    assertTrue(TwoLevelSizes.gathersInRounds(nodes, block * Float.BYTES, perNode));
    TwoLevelReducerTest.run(
        nodes(nodes, perNode),
        SIZES,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) ->
            compare(Kind.ALL_GATHER, DataType.FLOAT32, null, block, device, reducer, own));
  }

  /** And inputs of reduce-scatters, whose contributions pass other nodes. */
  @ParameterizedTest
  @CsvSource({"64, 2", "70, 1"})
  void smallBlocksOfManyNodesAreExchangedInRounds(int nodes, int perNode) {
    int block = 37;
    int ranks = nodes * perNode;
    Shards input = new Shards((long) block * ranks, perNode, (long) block * nodes);
    assertTrue(TwoLevelSizes.passesBlocksOn(nodes, input, Float.BYTES));
    TwoLevelSizes sizes = TwoLevelSizes.USUAL;
    assertEquals(Way.EXCHANGE, sizes.scatter(SumOrder.RANKS, nodes, input.count(), 4, 4, perNode));
    TwoLevelReducerTest.run(
        nodes(nodes, perNode),
        sizes,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          compare(Kind.ALL_TO_ALL, DataType.FLOAT32, null, block, device, reducer, own);
          Kind kind = Kind.REDUCE_SCATTER;
          compare(kind, DataType.FLOAT32, ReduceOp.SUM, block, device, reducer, own);
        });
  }

  @ParameterizedTest
  @CsvSource({"64, 2", "48, 2", "70, 1"})
  void smallBlocksOfManyNodesTakeAsManyMessagesAsModelled(int nodes, int perNode) {
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray sent = new AtomicLongArray(nodes);
    TwoLevelReducerTest.run(
        nodes * perNode,
        () -> new CountedNodes(perNode, DATA, messages, sent),
        TwoLevelSizes.USUAL,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          for (int block : new int[] {37, 200}) {
            long count = (long) block * own.size();
            try (DeviceBuffer in = device.allocate(DataType.FLOAT32, count);
                DeviceBuffer out = device.allocate(DataType.FLOAT32, count)) {
              CollectiveCall call = call(Kind.ALL_TO_ALL, false, in, out, null, own.rank());
              count(own, reducer, call, messages, sent);
            }
            if (own.rank() < nodes) {
              Modelled model = ModelledMoves.allToAll(machine(perNode), nodes, block);
              long most = messages.get(own.rank()) / perNode;
              assertTrue(block > 37 || most < nodes / 2, "messages=" + most);
              assertEquals(model.nodeMessages()[own.rank()], messages.get(own.rank()));
              assertEquals(model.nodeBytes()[own.rank()], sent.get(own.rank()));
            }
            own.barrier();
          }
        });
  }

  @Test
  void nodesWithDifferentNumbersOfRanksSendBlocksStraight() {
    TwoLevelReducerTest.run(
        new int[] {0, 1, 1, 2, 2, 2},
        SIZES,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          for (Kind kind : KINDS) {
            compare(kind, DataType.FLOAT32, ReduceOp.SUM, 777, device, reducer, own);
          }
        });
  }

  /** What does not depend on the order. */
  @ParameterizedTest
  @MethodSource("nodesAndWaysInAnyOrder")
  void reductionsInAnyOrderAreRight(int[] nodes, TwoLevelSizes sizes) {
    TwoLevelReducerTest.run(
        nodes,
        sizes,
        settings(SumOrder.ANY),
        (group, device, reducer, own) -> {
          for (int block : new int[] {0, 1, 300, 3001}) {
            for (DataType type : DataType.values()) {
              for (ReduceOp op : ReduceOp.values()) {
                boolean exact = op == ReduceOp.MIN || op == ReduceOp.MAX;
                boolean integer = type == DataType.INT32 || type == DataType.INT64;
                if (op.isDefinedFor(type) && (exact || integer)) {
                  compare(Kind.REDUCE_SCATTER, type, op, block, device, reducer, own);
                }
              }
            }
          }
        });
  }

  static Stream<Arguments> nodesAndWaysInAnyOrder() {
    int[] unequal = {0, 1, 1, 2, 2, 2};
    return Stream.of(nodes(2, 1), nodes(2, 2), nodes(3, 2), nodes(5, 2), unequal)
        .flatMap(
            nodes ->
                Stream.of(SIZES, BY_HALVING, TwoLevelSizes.USUAL)
                    .map(sizes -> Arguments.of(nodes, sizes)));
  }

  /** Numbers whose sum depends on the order, twice: in all sizes, the input stays as it is. */
  @ParameterizedTest
  @MethodSource("nodesAndWaysInAnyOrder")
  void sumsInAnyOrderHaveTheSameBitsInEachRun(int[] nodes, TwoLevelSizes sizes) {
    int[] blocks = {5, 300, 3001};
    byte[][][] results = new byte[2][nodes.length * blocks.length][];
    for (byte[][] ofRun : results) {
      TwoLevelReducerTest.run(
          nodes,
          sizes,
          settings(SumOrder.ANY),
          (group, device, reducer, own) -> {
            for (int i = 0; i < blocks.length; i++) {
              int count = blocks[i] * own.size();
              Random random = new Random(own.rank());
              try (DeviceBuffer in = device.allocate(DataType.BFLOAT16, count);
                  DeviceBuffer out = device.allocate(DataType.BFLOAT16, blocks[i])) {
                short[] values = new short[count];
                for (int at = 0; at < count; at++) {
                  values[at] = BFloat16.fromFloat((float) random.nextGaussian());
                }
                in.copyFrom(values);
                reducer.run(call(Kind.REDUCE_SCATTER, false, in, out, ReduceOp.SUM, own.rank()));
                ofRun[i * own.size() + own.rank()] = TwoLevelReducerTest.bytes(out);
                short[] after = new short[count];
                in.copyTo(after);
                assertArrayEquals(values, after);
                reducer.run(call(Kind.REDUCE_SCATTER, true, in, out, ReduceOp.SUM, own.rank()));
                DeviceBuffer inPlace = in.slice((long) own.rank() * blocks[i], blocks[i]);
                byte[] again = TwoLevelReducerTest.bytes(inPlace);
                assertArrayEquals(TwoLevelReducerTest.bytes(out), again);
              }
            }
          });
    }
    assertArrayEquals(results[0], results[1]);
  }

  /** Of all-gather, reduce-scatter and all-to-all of a block, whose blocks have several pieces. */
  @ParameterizedTest
  @CsvSource({
    "2, 2, RANKS",
    "3, 2, RANKS",
    "4, 4, RANKS",
    "16, 2, RANKS",
    "64, 2, RANKS",
    "2, 2, ANY",
    "3, 2, ANY",
    "4, 4, ANY",
    "16, 2, ANY"
  })
  void eachElementCrossesALinkOnce(int nodes, int perNode, SumOrder order) {
    int block = nodes < 16 ? 3000 : 600 * 64 / nodes;
    int bytes = block * Float.BYTES;
    TwoLevelSizes sizes = nodes < 16 ? SIZES : LARGER;
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray sent = new AtomicLongArray(nodes);
    TwoLevelReducerTest.run(
        nodes * perNode,
        () -> new CountedNodes(perNode, DATA, messages, sent),
        sizes,
        settings(order),
        (group, device, reducer, own) -> {
          int others = perNode * (nodes - 1);
          for (Kind kind : nodes < 64 ? KINDS : MOVES) { // sums of 64 nodes take threads long
            int size = own.size();
            try (DeviceBuffer in =
                    device.allocate(DataType.FLOAT32, (long) block * kind.inputBlocks(size));
                DeviceBuffer out =
                    device.allocate(DataType.FLOAT32, (long) block * kind.outputBlocks(size))) {
              CollectiveCall call = call(kind, false, in, out, ReduceOp.SUM, own.rank());
              count(own, reducer, call, messages, sent);
            }
            int pieces = sizes.pieces(block, Float.BYTES, perNode).chunks();
            int chunks = sizes.scattered(order, nodes, block, Float.BYTES, perNode).chunks();
            if (own.rank() < nodes) {
              int node = own.rank();
              boolean toAll =
                  kind == Kind.REDUCE_SCATTER && order == SumOrder.RANKS && node < nodes - 1;
              int crossing = toAll ? others + perNode : others; // blocks of a node's sums
              long expected =
                  switch (kind) {
                    case ALL_GATHER ->
                        nodes < 64 ? others * pieces : perNode * 6; // messages, rounds
                    case REDUCE_SCATTER -> crossing * chunks;
                    default -> others;
                  };
              int each = kind == Kind.ALL_TO_ALL ? perNode : 1;
              Modelled model =
                  switch (kind) {
                    case ALL_GATHER ->
                        ModelledMoves.allGather(machine(perNode), nodes, sizes, block);
                    case ALL_TO_ALL -> ModelledMoves.allToAll(machine(perNode), nodes, block);
                    default -> null;
                  };
              if (model != null) {
                assertEquals(model.nodeMessages()[0], messages.get(node), kind + " messages");
                assertEquals(model.nodeBytes()[0], sent.get(node), kind + " bytes");
              }
              assertEquals(expected, messages.get(node), kind + " messages");
              assertEquals((long) crossing * each * bytes, sent.get(node), kind + " bytes");
            }
          }
        });
  }

  /** Of a machine whose times do not matter. */
  private static ModelledMachine machine(int perNode) {
    return new ModelledMachine(perNode, 1e9, 0, 0, 0, 0, 1e9, 1e9);
  }

  /** Runs a call of all ranks, and counts what it sends. */
  private static void count(
      GradientSync own,
      Reducer reducer,
      CollectiveCall call,
      AtomicLongArray messages,
      AtomicLongArray bytes) {
    own.barrier();
    if (own.rank() == 0) {
      for (int node = 0; node < messages.length(); node++) {
        messages.set(node, 0);
        bytes.set(node, 0);
      }
    }
    own.barrier();
    reducer.run(call);
    own.barrier();
  }

  /** Blocks that are too large to be collected; at the end, of nodes with one rank each. */
  @ParameterizedTest
  @CsvSource({"2, 2", "3, 2", "4, 4", "16, 2", "64, 1"})
  void eachLargeBlockOfAnAllToAllCrossesALinkOnce(int nodes, int perNode) {
    int block = 4097;
    assertFalse(TwoLevelSizes.collects((long) block * Float.BYTES));
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray sent = new AtomicLongArray(nodes);
    TwoLevelReducerTest.run(
        nodes * perNode,
        () -> new CountedNodes(perNode, DATA, messages, sent),
        TwoLevelSizes.USUAL,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          long count = (long) block * own.size();
          try (DeviceBuffer in = device.allocate(DataType.FLOAT32, count);
              DeviceBuffer out = device.allocate(DataType.FLOAT32, count)) {
            CollectiveCall call = call(Kind.ALL_TO_ALL, false, in, out, null, own.rank());
            count(own, reducer, call, messages, sent);
          }
          if (own.rank() < nodes) {
            Modelled model = ModelledMoves.allToAll(machine(perNode), nodes, block);
            assertEquals(model.nodeMessages()[0], messages.get(own.rank()));
            assertEquals(model.nodeBytes()[0], sent.get(own.rank()));
            int blocks = perNode * perNode * (nodes - 1);
            assertEquals(blocks, messages.get(own.rank()));
            assertEquals((long) blocks * block * Float.BYTES, sent.get(own.rank()));
          }
        });
  }

  /** From a rank of the first node, and of one in the middle. */
  @ParameterizedTest
  @CsvSource({"2, 2", "3, 2", "4, 4", "16, 2", "64, 2"})
  void eachNodeGetsABroadcastOnce(int nodes, int perNode) {
    int count = 9001;
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray sent = new AtomicLongArray(nodes);
    TwoLevelReducerTest.run(
        nodes * perNode,
        () -> new CountedNodes(perNode, DATA, messages, sent),
        SIZES,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          for (int root : new int[] {0, own.size() / 2 + 1}) {
            try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
              count(own, reducer, CollectiveCall.broadcast(buffer, root), messages, sent);
            }
            if (own.rank() < nodes) {
              Modelled model = ModelledMoves.broadcast(machine(perNode), nodes, SIZES, count);
              int place = Math.floorMod(own.rank() - root / perNode - 1, nodes);
              long bytes = model.nodeBytes()[place];
              assertEquals(model.nodeMessages()[place], messages.get(own.rank()), "root=" + root);
              assertEquals(bytes, sent.get(own.rank()), "root=" + root);
              long chunk = SIZES.broadcast(nodes, count, Float.BYTES, perNode).chunk();
              assertTrue(bytes <= (count + perNode * chunk) * Float.BYTES, "bytes=" + bytes);
            }
            own.barrier();
          }
        });
  }

  static Stream<int[]> placements() {
    return Stream.of(nodes(2, 1), nodes(3, 2), nodes(5, 2), new int[] {0, 1, 1, 2, 2, 2});
  }

  @ParameterizedTest
  @MethodSource("placements")
  void allRanksGetTheElementsOfEachRoot(int[] nodes) {
    TwoLevelReducerTest.run(
        nodes,
        SIZES,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          for (DataType type : new DataType[] {DataType.BFLOAT16, DataType.FLOAT64}) {
            for (int count : new int[] {0, 1, 2, 5000}) {
              for (int root = 0; root < own.size(); root++) {
                try (DeviceBuffer whole = device.allocate(type, count + 3L);
                    DeviceBuffer buffer = whole.slice(1, count)) {
                  CollectiveCall call = CollectiveCall.broadcast(buffer, root);
                  for (int run = 0; run < 2; run++) {
                    int seed = 31 * root + run;
                    ByteBuffer expected = TwoLevelReducerTest.random(type, count, new Random(seed));
                    if (own.rank() == root) {
                      TwoLevelReducerTest.write(buffer, expected);
                    }
                    reducer.run(call);
                    byte[] bytes = new byte[expected.capacity()];
                    expected.get(0, bytes);
                    assertArrayEquals(bytes, TwoLevelReducerTest.bytes(buffer));
                  }
                }
              }
            }
          }
        });
  }

  @Test
  void broadcastsOfOtherMemoryAndThoseThatDoNotMatchAreHandled() {
    int count = 4000;
    TwoLevelReducerTest.run(
        nodes(2, 2),
        SIZES,
        settings(SumOrder.RANKS),
        (group, device, reducer, own) -> {
          try (DeviceBuffer shared = device.allocate(DataType.FLOAT32, count);
              DeviceBuffer other = own.rank() == 1 ? wrapped(device, count) : shared) {
            DeviceBuffer odd = own.rank() == 3 ? shared.slice(0, count / 2) : shared;
            float run = 0;
            for (DeviceBuffer buffer : new DeviceBuffer[] {shared, other, shared}) {
              run++;
              float[] values = new float[count];
              Arrays.fill(values, own.rank() == 3 ? run : 0);
              buffer.copyFrom(values);
              assertThrows(
                  MismatchedCallException.class,
                  () -> reducer.run(CollectiveCall.broadcast(odd, 3)));
              reducer.run(CollectiveCall.broadcast(buffer, 3));
              buffer.copyTo(values);
              for (float value : values) {
                assertEquals(run, value);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @CsvSource({
    "RANKS, 2, 67108864, 4, 2, STRAIGHT", // as many bytes
    "RANKS, 4, 67108864, 4, 2, RUNNING_SUM",
    "RANKS, 2, 67108864, 4, 4, RUNNING_SUM",
    "RANKS, 4, 67108864, 8, 2, STRAIGHT", // wider sums
    "RANKS, 64, 65536, 4, 2, EXCHANGE", // many hops
    "RANKS, 64, 1024, 4, 2, CALLS",
    "ANY, 2, 67108864, 4, 2, RUNNING_SUM",
    "ANY, 64, 65536, 4, 2, HALVING",
    "ANY, 64, 1024, 4, 2, CALLS"
  })
  void reduceScattersTakeTheWayOfLeastTime(
      SumOrder order, int nodes, long bytes, int sum, int perNode, Way way) {
    assertEquals(way, TwoLevelSizes.USUAL.scatter(order, nodes, bytes / 4, 4, sum, perNode));
  }

  static Stream<Arguments> warm() {
    TwoLevelSizes usual = TwoLevelSizes.USUAL;
    return Stream.of(
        Arguments.of(Kind.ALL_GATHER, SIZES, SumOrder.RANKS, 3000),
        Arguments.of(Kind.ALL_TO_ALL, SIZES, SumOrder.RANKS, 3000),
        Arguments.of(Kind.BROADCAST, SIZES, SumOrder.RANKS, 3000),
        Arguments.of(Kind.BROADCAST, usual, SumOrder.RANKS, 200), // with the calls
        Arguments.of(Kind.REDUCE_SCATTER, SIZES, SumOrder.RANKS, 3000), // by running sums
        Arguments.of(Kind.REDUCE_SCATTER, BY_EXCHANGE, SumOrder.RANKS, 3000),
        Arguments.of(Kind.REDUCE_SCATTER, BY_HALVING, SumOrder.ANY, 3000),
        Arguments.of(Kind.REDUCE_SCATTER, usual, SumOrder.ANY, 200), // sums with the calls
        Arguments.of(Kind.REDUCE_SCATTER, usual, SumOrder.RANKS, 30_000)); // straight
  }

  @ParameterizedTest
  @MethodSource("warm")
  void allocatesNothingWhenWarm(Kind kind, TwoLevelSizes sizes, SumOrder order, int block) {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    TwoLevelReducerTest.run(
        nodes(2, 2),
        sizes,
        settings(order),
        (group, device, reducer, own) -> {
          long inCount = (long) block * kind.inputBlocks(4);
          long outCount = (long) block * kind.outputBlocks(4);
          try (DeviceBuffer in = device.allocate(DataType.FLOAT32, inCount);
              DeviceBuffer out = device.allocate(DataType.FLOAT32, outCount)) {
            CollectiveCall call = call(kind, false, in, out, ReduceOp.SUM, own.rank());
            long least = Long.MAX_VALUE;
            for (int round = 0; round < 5; round++) {
              long before = threads.getCurrentThreadAllocatedBytes();
              for (int i = 0; i < 40; i++) {
                reducer.run(call);
              }
              least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
            }
            // The smallest object per call would be 640 bytes.
            assertTrue(least < 600, "bytes allocated in 40 calls: " + least);
          }
        });
  }

  static Stream<Arguments> ways() {
    return Stream.of(
        Arguments.of(Kind.ALL_GATHER, SIZES, SumOrder.RANKS),
        Arguments.of(Kind.ALL_TO_ALL, SIZES, SumOrder.RANKS),
        Arguments.of(Kind.REDUCE_SCATTER, SIZES, SumOrder.RANKS),
        Arguments.of(Kind.REDUCE_SCATTER, BY_EXCHANGE, SumOrder.RANKS),
        Arguments.of(Kind.REDUCE_SCATTER, BY_HALVING, SumOrder.ANY));
  }

  @ParameterizedTest
  @MethodSource("ways")
  void otherMemoryAndCallsThatDoNotMatchAreHandled(Kind kind, TwoLevelSizes sizes, SumOrder order) {
    TwoLevelReducerTest.run(
        nodes(2, 2),
        sizes,
        settings(order),
        (group, device, reducer, own) -> {
          int inCount = 1000 * kind.inputBlocks(4);
          int outCount = 1000 * kind.outputBlocks(4);
          try (DeviceBuffer in = device.allocate(DataType.FLOAT32, inCount);
              DeviceBuffer out = device.allocate(DataType.FLOAT32, outCount);
              DeviceBuffer privateIn = own.rank() == 1 ? wrapped(device, inCount) : in;
              DeviceBuffer privateOut = own.rank() == 1 ? wrapped(device, outCount) : out) {
            float[] ones = new float[inCount];
            Arrays.fill(ones, 1);
            in.copyFrom(ones);
            privateIn.copyFrom(ones);
            CollectiveCall whole = call(kind, false, in, out, ReduceOp.AVERAGE, own.rank());
            CollectiveCall wrapped =
                call(kind, false, privateIn, privateOut, ReduceOp.AVERAGE, own.rank());
            CollectiveCall odd =
                own.rank() < 3
                    ? whole
                    : call(
                        kind,
                        false,
                        in.slice(0, inCount / 2),
                        out.slice(0, outCount / 2),
                        ReduceOp.AVERAGE,
                        3);
            for (CollectiveCall call : new CollectiveCall[] {whole, wrapped, whole}) {
              float[] values = new float[outCount];
              call.out().copyFrom(values);
              reducer.run(call);
              call.out().copyTo(values);
              for (float value : values) {
                assertEquals(1, value);
              }
              assertThrows(MismatchedCallException.class, () -> reducer.run(odd));
            }
          }
        });
  }

  /** Sums that travel with the calls, if one rank gives a name: that is no mismatch. */
  @Test
  void smallReduceScattersThatDifferAndMatchGoByMessages() {
    TwoLevelReducerTest.run(
        new int[] {0, 1, 1, 2, 2, 2},
        TwoLevelSizes.USUAL,
        settings(SumOrder.ANY),
        (group, device, reducer, own) -> {
          for (int odd = 0; odd < own.size(); odd++) {
            try (DeviceBuffer in = device.allocate(DataType.FLOAT32, 60);
                DeviceBuffer out = device.allocate(DataType.FLOAT32, 10)) {
              if (own.rank() == odd) {
                in.named("w");
              }
              float[] values = new float[60];
              for (int i = 0; i < values.length; i++) {
                values[i] = own.rank() + i;
              }
              in.copyFrom(values);
              reducer.run(call(Kind.REDUCE_SCATTER, false, in, out, ReduceOp.AVERAGE, own.rank()));
              float[] averages = new float[10];
              out.copyTo(averages);
              assertEquals(2.5f + 10 * own.rank() + 9, averages[9]);
            }
          }
        });
  }

  /** One fails in the middle of a call; the others name it, and none waits for ever. */
  @ParameterizedTest
  @MethodSource("ways")
  void rankThatFailsInTheMiddleIsNamed(Kind kind, TwoLevelSizes sizes, SumOrder order) {
    AtomicInteger ended = new AtomicInteger();
    AtomicBoolean begun = new AtomicBoolean();
    TwoLevelReducerTest.run(
        6,
        () -> new Disturbed(4, begun, TwoLevelCollectivesTest::fail),
        sizes,
        settings(order),
        (group, device, reducer, own) -> {
          int size = own.size();
          try (DeviceBuffer in = device.allocate(DataType.FLOAT32, 3000L * kind.inputBlocks(size));
              DeviceBuffer out =
                  device.allocate(DataType.FLOAT32, 3000L * kind.outputBlocks(size))) {
            CollectiveCall call = call(kind, false, in, out, ReduceOp.SUM, own.rank());
            own.barrier();
            begun.set(true);
            RuntimeException e = assertThrows(RuntimeException.class, () -> reducer.run(call));
            boolean names = e instanceof RankLostException && e.getMessage().contains("rank 4 ");
            assertTrue(own.rank() == 4 || names, () -> own.rank() + ": " + e);
            ended.incrementAndGet();
          }
        });
    assertEquals(6, ended.get());
  }

  private static void fail() {
    throw new IllegalStateException("no link");
  }

  /** Rank 3 has all that it needs, and waits for rank 2, which waits for rank 0. */
  @ParameterizedTest
  @MethodSource("waysOfWaiting")
  void rankThatAnotherNodeWaitsForIsNamed(Kind kind, TwoLevelSizes sizes, SumOrder order) {
    CountDownLatch named = new CountDownLatch(1);
    AtomicBoolean begun = new AtomicBoolean();
    String way = order.name().toLowerCase(Locale.ROOT);
    Settings patient = new Settings(Map.of("order", way));
    Settings impatient = new Settings(Map.of("order", way, "timeout", "1", "reports", "off"));
    TwoLevelReducerTest.run(
        4,
        () -> new Disturbed(0, begun, () -> await(named)),
        sizes,
        rank -> rank == 3 ? impatient : patient,
        (group, device, reducer, own) -> {
          try (DeviceBuffer in = device.allocate(DataType.FLOAT32, 4000);
              DeviceBuffer out = device.allocate(DataType.FLOAT32, 1000L * kind.outputBlocks(4))) {
            own.barrier();
            begun.set(true);
            reducer.run(call(kind, false, in, out, ReduceOp.SUM, own.rank()));
            assertTrue(own.rank() < 3); // the others may end before they know that rank 3 has left
          } catch (RankLostException e) {
            if (own.rank() == 3) {
              named.countDown();
              assertTrue(e.getMessage().startsWith("timed out: rank 0 "), e.getMessage());
            }
          }
        });
  }

  static Stream<Arguments> waysOfWaiting() {
    return Stream.of(
        Arguments.of(Kind.ALL_TO_ALL, SIZES, SumOrder.RANKS),
        Arguments.of(Kind.REDUCE_SCATTER, BY_EXCHANGE, SumOrder.RANKS),
        Arguments.of(Kind.REDUCE_SCATTER, BY_HALVING, SumOrder.ANY));
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Nodes of two ranks; something happens before one rank sends elements, once this has begun. */
  private static final class Disturbed extends OtherWorld {
    private final int disturbed;
    private final AtomicBoolean begun;
    private final Runnable action;

    Disturbed(int disturbed, AtomicBoolean begun, Runnable action) {
      super(rank -> rank / 2);
      this.disturbed = disturbed;
      this.begun = begun;
      this.action = action;
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      boolean areElements = rank() == disturbed && DATA.contains(tag % (1 << Channel.BITS));
      return areElements ? beforeStarts(message, this::act) : message;
    }

    private void act() {
      if (begun.get()) {
        action.run();
      }
    }
  }

  private static DeviceBuffer wrapped(HostDevice device, int count) {
    return device.wrap(
        DataType.FLOAT32, ByteBuffer.allocateDirect(count * 4).order(ByteOrder.nativeOrder()));
  }
}

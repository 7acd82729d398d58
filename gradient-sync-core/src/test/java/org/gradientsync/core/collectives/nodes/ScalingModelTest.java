package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ScalingModelTest {
  private static final Set<Integer> SENT = Set.of(Channel.SCATTER, Channel.GATHER, Channel.CALLS);

  /**
   * The machine of the measurements: two ranks a node, links of 400 Mbit/s, of whose frames of 1514
   * bytes 1448 are data. The other parameters hardly matter for large buffers.
   */
  private static final ModelledMachine LAB =
      new ModelledMachine(
          2,
          400e6 / 8 * 1448 / 1514,
          50 * ModelledMachine.MICROSECOND,
          10 * ModelledMachine.MICROSECOND,
          ModelledMachine.MICROSECOND,
          ModelledMachine.NANOSECOND,
          4e9,
          20e9);

  /** What two-level-between-nodes of 2026-11-24 in docs/results says of 64 MB in float32. */
  @ParameterizedTest
  @CsvSource({
    "2, RANKS, 1.353",
    "3, RANKS, 2.706",
    "4, RANKS, 2.734",
    "2, ANY, 1.345",
    "3, ANY, 1.839",
    "4, ANY, 2.122"
  })
  void timesOfLargeBuffersAreNearThoseMeasured(int nodes, SumOrder order, double measured) {
    Modelled model = ModelledTwoLevel.allReduce(LAB, nodes, order, 64_000_000 / 4);
    assertEquals(measured, model.seconds(), 0.1 * measured);
  }

  /**
   * The sizes travel with the calls, by messages between all ranks, and by a running sum: one whose
   * last chunk has one rank only, and one whose chunks have the maximum size.
   */
  @ParameterizedTest
  @CsvSource({"2, RANKS", "3, RANKS", "5, RANKS", "10, RANKS", "2, ANY", "3, ANY", "5, ANY"})
  void nodesSendAsManyMessagesAndBytesAsInRealRuns(int nodes, SumOrder order) {
    requireModelled(Kind.ALL_REDUCE, nodes, order, 200, 5000, 30_001, 32_769, 300_007);
  }

  @ParameterizedTest
  @CsvSource({
    "7, RANKS",
    "16, RANKS",
    "24, RANKS",
    "33, RANKS",
    "64, RANKS",
    "7, ANY",
    "16, ANY",
    "17, ANY",
    "24, ANY",
    "33, ANY",
    "64, ANY"
  })
  void smallBuffersOfManyNodesDoSo(int nodes, SumOrder order) {
    requireModelled(Kind.ALL_REDUCE, nodes, order, 1, 200, 4096, 4097);
  }

  @ParameterizedTest
  @CsvSource({
    "3, RANKS, 1, CALLS",
    "5, RANKS, 26001, RUNNING_SUM",
    "7, RANKS, 251, EXCHANGE",
    "33, RANKS, 301, EXCHANGE",
    "16, RANKS, 2001, STRAIGHT",
    "3, ANY, 1, CALLS",
    "5, ANY, 401, STRAIGHT",
    "4, ANY, 30001, RUNNING_SUM",
    "16, ANY, 501, STRAIGHT",
    "16, ANY, 3001, HALVING",
    "33, ANY, 301, HALVING",
    "33, ANY, 2001, HALVING"
  })
  void reduceScattersDoSo(int nodes, SumOrder order, int block, Way way) {
    long count = (long) block * nodes * LAB.ranksPerNode();
    assertEquals(way, TwoLevelSizes.USUAL.scatter(order, nodes, count, 4, 4, LAB.ranksPerNode()));
    requireModelled(Kind.REDUCE_SCATTER, nodes, order, block);
  }

  private static void requireModelled(Kind kind, int nodes, SumOrder order, int... blocks) {
    int[] counts = blocks.clone();
    if (kind == Kind.REDUCE_SCATTER) {
      Arrays.setAll(counts, i -> blocks[i] * nodes * LAB.ranksPerNode());
    }
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray bytes = new AtomicLongArray(nodes);
    long[][] sent = new long[counts.length][];
    long[][] size = new long[counts.length][];
    int perNode = LAB.ranksPerNode();
    LocalRanks.run(
        nodes * perNode,
        own -> {
          try (ProcessGroup group =
                  ProcessGroup.world(new CountedNodes(perNode, SENT, messages, bytes));
              HostDevice device = new HostDevice();
              Reducer reducer = reducer(group, device, order)) {
            for (int i = 0; i < counts.length; i++) {
              try (DeviceBuffer in = device.allocate(DataType.FLOAT32, counts[i]);
                  DeviceBuffer block = device.allocate(DataType.FLOAT32, blocks[i])) {
                DeviceBuffer out = kind == Kind.ALL_REDUCE ? in : block;
                own.barrier();
                long[] sentBefore = read(messages);
                long[] sizeBefore = read(bytes);
                own.barrier();
                reducer.run(new CollectiveCall(kind, in, out, ReduceOp.SUM, RankGroup.NO_RANK));
                own.barrier();
                if (own.rank() == 0) {
                  sent[i] = difference(read(messages), sentBefore);
                  size[i] = difference(read(bytes), sizeBefore);
                }
                own.barrier();
              }
            }
          }
        });
    for (int i = 0; i < counts.length; i++) {
      Modelled model =
          kind == Kind.ALL_REDUCE
              ? ModelledTwoLevel.allReduce(LAB, nodes, order, counts[i])
              : ModelledTwoLevel.reduceScatter(LAB, nodes, order, counts[i]);
      assertArrayEquals(sent[i], model.nodeMessages(), "messages, count=" + counts[i]);
      assertArrayEquals(size[i], model.nodeBytes(), "bytes, count=" + counts[i]);
    }
  }

  private static Reducer reducer(ProcessGroup group, HostDevice device, SumOrder order) {
    Settings settings = new Settings(Map.of("order", order.name().toLowerCase(Locale.ROOT)));
    return new TwoLevelReducerProvider()
        .create(
            new SyncContext(group, new GroupCommunicator(group), device, settings, new OwnParts()));
  }

  private static long[] read(AtomicLongArray numbers) {
    long[] values = new long[numbers.length()];
    Arrays.setAll(values, numbers::get);
    return values;
  }

  private static long[] difference(long[] after, long[] before) {
    long[] values = new long[after.length];
    Arrays.setAll(values, i -> after[i] - before[i]);
    return values;
  }

  /** Of sizes between powers of two as well. */
  @ParameterizedTest
  @ValueSource(
      ints = {2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 31, 32, 48, 63, 64, 100, 200, 257, 500, 512})
  void sumsInAnyOrderTakeHardlyLongerThanTheBestRival(int nodes) {
    ModelledMachine machine = ModelledMachine.CLUSTER;
    long most = nodes > 256 ? 1 << 19 : nodes > 64 ? 2 << 20 : 16 << 20;
    for (long base = 1 << 10; base < most; base *= 2) {
      for (int eighths : new int[] {8, 9, 11, 14}) {
        long count = base * eighths / 8 / ModelledTwoLevel.ELEMENT;
        double time = ModelledTwoLevel.allReduce(machine, nodes, SumOrder.ANY, count).seconds();
        double best =
            Stream.of(
                    ModelledRivals.ring(machine, nodes, count),
                    ModelledRivals.nodeRing(machine, nodes, count),
                    ModelledRivals.doubling(machine, nodes, count),
                    ModelledRivals.tree(machine, nodes, count))
                .mapToDouble(Modelled::seconds)
                .min()
                .orElseThrow();
        assertTrue(time <= 1.15 * best, time / best + ", bytes=" + 4 * count);
      }
    }
  }

  @Test
  void oneNodeStandsForAllOfASymmetricSum() {
    int chunk = 2048;
    for (int nodes : new int[] {2, 4, 8, 16}) {
      Shards shards = new Shards(8L * 64 * chunk, 8, chunk);
      Modelled all = ModelledTwoLevel.sum(ModelledMachine.CLUSTER, nodes, SumOrder.ANY, shards);
      Modelled one = ModelledTwoLevel.symmetricSum(ModelledMachine.CLUSTER, nodes, shards);
      assertEquals(all.picoseconds(), one.picoseconds());
      assertEquals(all.messages(), one.messages());
    }
  }

  @Test
  void linksCarryOneMessageAfterTheOther() {
    long second = (long) ModelledMachine.SECOND;
    ModelledMachine machine = new ModelledMachine(1, 10, 5 * second, 0, 0, 0, 1, 1);
    VirtualLinks links = new VirtualLinks(machine, 3);
    long[] arrivals = new long[3];
    assertEquals(second, links.send(0, 2, 0, 1, 10, 0));
    assertEquals(3 * second, links.send(0, 1, 0, 1, 20, 1)); // leaves after the first one
    assertEquals(4 * second, links.send(1, 2, 0, 1, 40, 2)); // arrives after the first one
    links.run((time, event) -> arrivals[(int) event] = time / second);
    assertArrayEquals(new long[] {6, 8, 10}, arrivals);
    assertArrayEquals(new long[] {2, 1, 0}, links.messages());
    assertArrayEquals(new long[] {30, 40, 0}, links.bytes());
  }

  @Test
  void treesReachAllNodesAndShareTheWork() {
    for (int nodes = 2; nodes < 70; nodes++) {
      int[] trees = new int[nodes]; // in which a node has children
      for (int tree = 0; tree < 2; tree++) {
        int[] parents = ModelledRivals.parents(nodes, tree);
        boolean[] hasChildren = new boolean[nodes];
        for (int node = 0; node < nodes; node++) {
          int steps = 0;
          for (int at = node; parents[at] >= 0; at = parents[at]) {
            assertTrue(++steps <= Integer.SIZE - Integer.numberOfLeadingZeros(nodes), "too deep");
          }
          if (parents[node] >= 0) {
            hasChildren[parents[node]] = true;
          }
        }
        for (int node = 0; node < nodes; node++) {
          trees[node] += hasChildren[node] ? 1 : 0;
        }
      }
      int most = nodes % 2 == 0 ? 1 : 2; // the trees are shifted, so one node may be in both
      assertTrue(Arrays.stream(trees).max().orElseThrow() <= most, "nodes=" + nodes);
    }
  }

  /** Without latency and costs, large buffers take as long as their bytes need on the links. */
  @Test
  void largeBuffersOfRivalsAreBoundByTheLinks() {
    ModelledMachine machine = new ModelledMachine(8, 1e9, 1000, 0, 0, 0, 1e15, 1e16);
    long count = 1 << 26;
    double once = count * 4 / machine.link();
    assertEquals(
        2 * 63. / 64 * once, ModelledRivals.ring(machine, 8, count).seconds(), 0.02 * once);
    assertEquals(
        2 * 7. / 8 * once, ModelledRivals.nodeRing(machine, 8, count).seconds(), 0.02 * once);
    assertEquals(3 * 8 * once, ModelledRivals.doubling(machine, 8, count).seconds(), 0.2 * once);
    assertEquals(2 * once, ModelledRivals.tree(machine, 8, count).seconds(), 0.1 * once);
  }

  /** Of 1 GiB on each rank. */
  @ParameterizedTest
  @ValueSource(ints = {2, 16, 64, 512})
  void largeBuffersThatOnlyMoveAreBoundByTheLinks(int nodes) {
    ModelledMachine machine =
        new ModelledMachine(
            8, 12.5e9, ModelledMachine.CLUSTER.latency(), 500_000, 0, 0, 1e15, 1e16);
    TwoLevelSizes sizes = TwoLevelSizes.USUAL;
    long count = 1 << 28;
    long block = count / 8 / nodes;
    double once = count * 4 / machine.link();
    double share = (nodes - 1.) / nodes * once;
    double[] expected = {once, share, 8 * share};
    double[] modelled = {
      ModelledMoves.broadcast(machine, nodes, sizes, count).seconds(),
      ModelledMoves.allGather(machine, nodes, sizes, block).seconds(),
      ModelledMoves.allToAll(machine, nodes, block).seconds()
    };
    for (int i = 0; i < modelled.length; i++) {
      assertEquals(expected[i], modelled[i], 0.1 * expected[i]);
    }
  }
}

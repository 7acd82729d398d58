package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks as threads that take each other for ranks of other nodes, with buffers in host memory. */
class TwoLevelGpuReducerTest {
  private static final Settings SETTINGS = new Settings(Map.of("timeout", "20"));

  /** Several pieces, and several chunks in each of them. */
  private static final TwoLevelGpuReducer.Sizes SMALL = new TwoLevelGpuReducer.Sizes(0, 6000, 512);

  private interface Calls {
    void make(ProcessGroup group, HostDevice device, Reducer reducer, GradientSync own)
        throws Exception;
  }

  private interface Wrapper {
    Reducer wrap(Reducer crossNode, int rank);
  }

  private static void run(int[] nodes, TwoLevelGpuReducer.Sizes sizes, Calls calls) {
    run(nodes, sizes, (crossNode, rank) -> crossNode, calls);
  }

  private static void run(
      int[] nodes, TwoLevelGpuReducer.Sizes sizes, Wrapper wrapper, Calls calls) {
    LocalRanks.run(
        nodes.length,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new OtherWorld(rank -> nodes[rank]));
              ProcessGroup group = world.split(0, world.rank(), SETTINGS.timeouts());
              HostDevice device = new HostDevice()) {
            NodeLayout layout = new NodeLayout(group.ranks());
            Resources parts = new Resources();
            ProcessGroup node =
                parts.add(group.split(layout.node(), group.rank(), group.timeouts()));
            ProcessGroup crossNode =
                parts.add(group.split(layout.localRank(), group.rank(), group.timeouts()));
            try (Reducer reducer =
                new TwoLevelGpuReducer(
                    "two-level-gpu",
                    group,
                    node,
                    parts.add(new MessageReducer("node", node, device)),
                    crossNode,
                    wrapper.wrap(
                        parts.add(new MessageReducer("between nodes", crossNode, device)),
                        group.rank()),
                    parts.add(new MessageReducer("flat", group, device)),
                    device,
                    sizes,
                    parts)) {
              calls.make(group, device, reducer, own);
            }
          }
        });
  }

  static Stream<Arguments> placements() {
    return Stream.of(
            new int[] {0, 0, 1, 1}, new int[] {7, 7, 2, 2, 5, 5}, new int[] {0, 0, 0, 1, 1, 1})
        .map(Arguments::of);
  }

  @ParameterizedTest
  @MethodSource("placements")
  void bitsAreThoseOfTheSumInRankOrder(int[] nodes) {
    run(
        nodes,
        SMALL,
        (group, device, reducer, own) -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              if (op.isDefinedFor(type)) {
                for (int count : new int[] {0, 1, 5, 6, 5001}) {
                  TwoLevelReducerTest.compare(type, op, count, device, reducer, own);
                }
              }
            }
          }
        });
  }

  @Test
  void buffersOfTheUsualSizesHaveTheseBitsToo() {
    run(
        new int[] {0, 0, 1, 1},
        TwoLevelGpuReducer.SIZES,
        (group, device, reducer, own) -> {
          for (int count : new int[] {1000, 1 << 20}) {
            TwoLevelReducerTest.compare(
                DataType.BFLOAT16, ReduceOp.AVERAGE, count, device, reducer, own);
          }
        });
  }

  @Test
  void allocatesNothingWhenWarm() {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    run(
        new int[] {0, 0, 1, 1},
        SMALL,
        (group, device, reducer, own) -> {
          try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 1001)) {
            CollectiveCall call = CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE);
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

  @Test
  void differentCallsAreNamedAndChangeNothing() {
    run(
        new int[] {0, 0, 1, 1},
        SMALL,
        (group, device, reducer, own) ->
            TwoLevelReducerTest.requireMismatch(group, device, reducer));
  }

  /** The others wait on their node or on another one, and must not wait for the time-out. */
  @Test
  void aFailureOnOneRankEndsTheCallOnAll() {
    run(
        new int[] {0, 0, 1, 1, 2, 2},
        SMALL,
        (crossNode, rank) -> rank == 3 ? failing(crossNode) : crossNode,
        (group, device, reducer, own) -> {
          try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 5000)) {
            for (int call = 0; call < 2; call++) {
              String message =
                  assertThrows(
                          RankLostException.class,
                          () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)))
                      .getMessage();
              assertTrue(
                  message.contains(
                      "the call failed on rank 3: java.lang.IllegalStateException: no route, rank="
                          + group.rank()
                          + ", in=allReduce(FLOAT32[5000], SUM)"),
                  message);
            }
          }
        });
  }

  private static Reducer failing(Reducer crossNode) {
    return new ForwardingReducer<>(crossNode) {
      @Override
      public void exchange(List<CollectiveCall> messages) {
        throw new IllegalStateException("no route");
      }
    };
  }

  @Test
  void eachStepMovesOneChunkAtMostInEachDirectionOfALink() {
    int nodes = 4;
    int chunks = 5;
    TwoLevelGpuSteps[] steps = new TwoLevelGpuSteps[nodes];
    Arrays.setAll(steps, node -> new TwoLevelGpuSteps(chunks, nodes, node));
    for (int step = 0; step < steps[0].count(); step++) {
      for (int node = 0; node + 1 < nodes; node++) {
        assertEquals(steps[node].sumSent(step), steps[node + 1].sumReceived(step));
        assertEquals(steps[node].resultReceived(step), steps[node + 1].resultSent(step));
      }
    }
    assertEquals(chunks - 1, steps[0].resultReceived(steps[0].count() - 1));
  }
}

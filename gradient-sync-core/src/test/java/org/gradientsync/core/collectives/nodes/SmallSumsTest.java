package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.rendezvous.GatheredCalls;
import org.gradientsync.core.rendezvous.LeaderRounds;
import org.gradientsync.core.rendezvous.SumTree;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Sums in any order that travel with the calls, between threads that stand for ranks of nodes. */
class SmallSumsTest {
  private static final Settings ANY = new Settings(Map.of("order", "any"));
  private static final int MOST = GatheredCalls.MAX_SUM;

  /** One rank on the first node, two on the second, and so on by turns. */
  private static int[] nodes(int count) {
    int[] nodes = new int[count + count / 2];
    for (int node = 0, rank = 0; node < count; node++) {
      for (int i = 0; i <= node % 2; i++) {
        nodes[rank++] = node;
      }
    }
    return nodes;
  }

  /** Numbers whose sum depends on the order of additions. */
  private static float[] numbers(int rank, int count) {
    Random random = new Random(rank);
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = Math.scalb(random.nextFloat() - 0.5f, random.nextInt(20));
    }
    return numbers;
  }

  /** Node sums in rank order, added along a binary tree over the nodes. */
  private static float[] sum(int[] nodes, int first, int end, int count) {
    int size = Integer.highestOneBit(Math.max(1, end - first - 1));
    if (end - first == 1) {
      float[] sum = null;
      for (int rank = 0; rank < nodes.length; rank++) {
        if (nodes[rank] == first) {
          float[] next = numbers(rank, count);
          sum = sum == null ? next : add(sum, next);
        }
      }
      return sum;
    }
    int middle = first + size;
    return add(sum(nodes, first, middle, count), sum(nodes, middle, end, count));
  }

  private static float[] add(float[] a, float[] b) {
    float[] sum = a.clone();
    for (int i = 0; i < a.length; i++) {
      sum[i] += b[i];
    }
    return sum;
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 6, 7, 8, 11, 16})
  void allRanksAddAlongTheSameTree(int count) {
    int[] nodes = nodes(count);
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        ANY,
        (group, device, reducer, own) -> {
          for (int length : new int[] {1, 7, MOST / Float.BYTES}) {
            float[] expected = sum(nodes, 0, count, length);
            try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, length);
                DeviceBuffer half = device.allocate(DataType.BFLOAT16, length)) {
              for (int call = 0; call < 3; call++) {
                float[] values = numbers(group.rank(), length);
                buffer.copyFrom(values);
                reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
                buffer.copyTo(values);
                assertArrayEquals(expected, values);
              }
              short[] ones = new short[length];
              Arrays.fill(ones, BFloat16.fromFloat(group.rank()));
              half.copyFrom(ones);
              reducer.run(CollectiveCall.allReduce(half, ReduceOp.AVERAGE));
              half.copyTo(ones);
              assertEquals((nodes.length - 1) / 2f, BFloat16.toFloat(ones[length - 1]), 0.05f);
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void whatDoesNotDependOnTheOrderHasTheSameBits(int count) {
    TwoLevelReducerTest.run(
        nodes(count),
        TwoLevelSizes.USUAL,
        ANY,
        (group, device, reducer, own) -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              boolean exact = op == ReduceOp.MIN || op == ReduceOp.MAX;
              boolean integer = type == DataType.INT32 || type == DataType.INT64;
              if (op.isDefinedFor(type) && (exact || integer)) {
                TwoLevelReducerTest.compare(type, op, 500, device, reducer, own);
              }
            }
          }
        });
  }

  /** A name that only one rank gives is no mismatch, but calls that differ carry no sums. */
  @Test
  void callsThatDifferAndMatchAreReducedByMessages() {
    int[] nodes = nodes(3);
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        ANY,
        (group, device, reducer, own) -> {
          for (int odd = 0; odd < nodes.length; odd++) {
            try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 10)) {
              if (group.rank() == odd) {
                buffer.named("w");
              }
              float[] values = new float[10];
              Arrays.fill(values, group.rank());
              buffer.copyFrom(values);
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
              buffer.copyTo(values);
              assertEquals((nodes.length - 1) / 2f, values[9]);
            }
          }
        });
  }

  @Test
  void callsThatDoNotMatchAreNamedAndChangeNothing() {
    int[] nodes = nodes(5);
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        ANY,
        (group, device, reducer, own) -> {
          try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 50)) {
            for (int odd = 0; odd < nodes.length; odd++) {
              float[] before = numbers(group.rank(), 50);
              buffer.copyFrom(before);
              DeviceBuffer part = buffer.slice(0, group.rank() == odd ? 3 : 50);
              String text =
                  assertThrows(
                          MismatchedCallException.class,
                          () -> reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM)))
                      .getMessage();
              for (int rank = 0; rank < nodes.length; rank++) {
                String call = "rank " + rank + ": allReduce(FLOAT32[" + (rank == odd ? 3 : 50);
                assertTrue(text.contains(call), text);
              }
              float[] after = new float[50];
              buffer.copyTo(after);
              assertArrayEquals(before, after);
            }
          }
        });
  }

  @Test
  void leadersSendOneSumInEachRoundOfAPowerOfTwo() {
    for (int nodes = 2; nodes < 70; nodes++) {
      for (int node = 0; node < nodes; node++) {
        SumTree tree = new SumTree(nodes, node);
        for (int round = 0; round < tree.rounds(); round++) {
          int most = Integer.bitCount(nodes) == 1 ? 1 : Math.max(1, 2 * round);
          assertTrue(tree.given(round).length <= most, nodes + " " + node + " " + round);
          int from = new LeaderRounds(nodes, node).source(round);
          assertEquals(new SumTree(nodes, from).given(round).length, tree.taken(round).length);
        }
      }
    }
  }
}

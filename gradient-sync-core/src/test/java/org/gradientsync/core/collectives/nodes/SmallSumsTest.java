package org.gradientsync.core.collectives.nodes;

import static java.util.stream.Collectors.joining;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.rendezvous.GatheredCalls;
import org.gradientsync.core.rendezvous.LeaderRounds;
import org.gradientsync.core.rendezvous.SumRounds;
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

  /**
   * Node sums in rank order, added along a binary tree over groups of nodes, of which the first
   * have two. The nodes of two groups are added one after the other.
   */
  private static float[] sum(int[] nodes, int firstGroup, int groups, int count) {
    if (groups > 2) {
      float[] left = sum(nodes, firstGroup, groups / 2, count);
      return add(left, sum(nodes, firstGroup + groups / 2, groups / 2, count));
    }
    int all = nodes[nodes.length - 1] + 1;
    int seconds = all - Integer.highestOneBit(all);
    int end = firstGroup + groups + Math.min(firstGroup + groups, seconds);
    float[] sum = null;
    for (int node = firstGroup + Math.min(firstGroup, seconds); node < end; node++) {
      float[] ofNode = null;
      for (int rank = 0; rank < nodes.length; rank++) {
        if (nodes[rank] == node) {
          float[] next = numbers(rank, count);
          ofNode = ofNode == null ? next : add(ofNode, next);
        }
      }
      sum = sum == null ? ofNode : add(sum, ofNode);
    }
    return sum;
  }

  private static float[] add(float[] a, float[] b) {
    float[] sum = a.clone();
    for (int i = 0; i < a.length; i++) {
      sum[i] += b[i];
    }
    return sum;
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 6, 7, 8, 11, 16, 23})
  void allRanksAddAlongTheSameTree(int count) {
    int[] nodes = nodes(count);
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        ANY,
        (group, device, reducer, own) -> {
          for (int length : new int[] {1, 7, MOST / Float.BYTES}) {
            float[] expected = sum(nodes, 0, Integer.highestOneBit(count), length);
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

  /** As if each leader sent sets of nodes. */
  @Test
  void leadersAddTheSumOfEachNodeOnceInTheSameOrder() {
    for (int nodes = 1; nodes < 70; nodes++) {
      List<SumRounds> rounds = new ArrayList<>();
      List<String[]> sums = new ArrayList<>(); // by node and slot
      for (int node = 0; node < nodes; node++) {
        rounds.add(new SumRounds(nodes, node));
        sums.add(new String[rounds.get(node).slots()]);
        sums.get(node)[0] = "" + node;
      }
      for (int round = 0; round < rounds.get(0).count(); round++) {
        int[] sent = new int[nodes];
        for (int node = 0; node < nodes; node++) {
          int[] sources = new LeaderRounds(nodes, node).sources(round);
          for (int i = 0; i < sources.length; i++) {
            int from = sources[i];
            sent[from]++;
            sums.get(node)[rounds.get(node).taken(round)[i]] =
                sums.get(from)[rounds.get(from).sum(round)];
          }
        }
        for (int node = 0; node < nodes; node++) {
          assertEquals(new LeaderRounds(nodes, node).destinations(round).length, sent[node]);
          String[] own = sums.get(node);
          int[] parts = rounds.get(node).parts(round);
          String sum = Arrays.stream(parts).mapToObj(i -> own[i]).collect(joining(" "));
          own[rounds.get(node).sum(round + 1)] = parts.length == 1 ? sum : "(" + sum + ")";
        }
      }
      String total = sums.get(0)[rounds.get(0).sum(rounds.get(0).count())];
      String all = IntStream.range(0, nodes).mapToObj(Integer::toString).collect(joining(" "));
      assertEquals(all, total.replaceAll("[()]", ""));
      for (int node = 0; node < nodes; node++) {
        assertEquals(total, sums.get(node)[rounds.get(node).sum(rounds.get(node).count())]);
      }
    }
  }
}

package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.rendezvous.LeaderRounds;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Broadcasts and scatters that travel with the calls, from one node to all others. */
class SmallBroadcastsTest {
  private static final Settings NONE = new Settings(Map.of());
  private static final Set<Integer> SENT = Set.of(Channel.CALLS, Channel.DATA);
  private static final int COUNT = 256;

  private static CollectiveCall broadcast(DeviceBuffer buffer, int root) {
    return new CollectiveCall(Kind.BROADCAST, buffer, buffer, null, root);
  }

  private static float[] values(int seed, int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = 1000 * seed + 0.3f * i;
    }
    return values;
  }

  /** By the node of each rank. If one rank gives a name, its call differs, and still matches. */
  @ParameterizedTest
  @ValueSource(strings = {"01", "001", "0122", "0011222", "012345", "0112223445", "1020"})
  void ranksGetWhatTheRootHas(String placement) {
    int[] nodes = placement.chars().map(digit -> digit - '0').toArray();
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        NONE,
        (group, device, reducer, own) -> {
          int rank = own.rank();
          int ranks = nodes.length;
          for (int root = 0; root < ranks; root++) {
            for (int odd = -1; odd < ranks; odd++) {
              try (DeviceBuffer all = device.allocate(DataType.FLOAT32, COUNT * ranks);
                  DeviceBuffer buffer = device.allocate(DataType.FLOAT32, COUNT)) {
                if (rank == odd) {
                  buffer.named("w");
                }
                for (int count : new int[] {COUNT, 3}) {
                  float[] got = values(rank, count);
                  DeviceBuffer part = buffer.slice(0, count);
                  part.copyFrom(got);
                  reducer.run(broadcast(part, root));
                  part.copyTo(got);
                  assertArrayEquals(values(root, count), got);
                  DeviceBuffer in = all.slice(0, (long) count * ranks);
                  in.copyFrom(values(root + odd, count * ranks));
                  DeviceBuffer given = rank == root ? in : null;
                  reducer.run(new CollectiveCall(Kind.SCATTER, given, part, null, root));
                  part.copyTo(got);
                  assertEquals(values(root + odd, count * ranks)[rank * count], got[0]);
                }
              }
            }
          }
        });
  }

  /** The last node has one rank. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5, 8, 11})
  void leadersSendTheElementsOfTheRootAlone(int nodes) {
    int ranks = 2 * nodes - 1;
    AtomicLongArray messages = new AtomicLongArray(nodes);
    AtomicLongArray bytes = new AtomicLongArray(nodes);
    TwoLevelReducerTest.run(
        ranks,
        () -> new CountedNodes(rank -> rank / 2, SENT, messages, bytes),
        TwoLevelSizes.USUAL,
        NONE,
        (group, device, reducer, own) -> {
          try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, COUNT)) {
            for (int root = 0; root < ranks; root++) {
              requireSent(nodes, root, own, reducer, buffer, messages, bytes);
            }
          }
        });
  }

  private static void requireSent(
      int nodes,
      int root,
      GradientSync own,
      Reducer reducer,
      DeviceBuffer buffer,
      AtomicLongArray messages,
      AtomicLongArray bytes) {
    int node = own.rank() / 2;
    own.barrier();
    long messagesBefore = messages.get(node);
    long bytesBefore = bytes.get(node);
    own.barrier();
    reducer.run(broadcast(buffer, root));
    own.barrier();
    LeaderRounds rounds = new LeaderRounds(nodes, node);
    long sent = 0;
    long size = 0;
    for (int round = 0; round < rounds.count(); round++) {
      int distance = root / 2 - rounds.first(round);
      boolean has = distance >= 0 && distance < rounds.blocks(round);
      int to = rounds.destinations(round).length;
      sent += to;
      size += (long) to * LeaderRounds.messageBytes(has ? 1 : 0, COUNT * Float.BYTES);
    }
    assertEquals(sent, messages.get(node) - messagesBefore, "root=" + root);
    assertEquals(size, bytes.get(node) - bytesBefore, "root=" + root);
  }

  @Test
  void callsThatDoNotMatchAreNamedAndChangeNothing() {
    int[] nodes = {0, 0, 1, 2, 2, 2, 3, 4};
    TwoLevelReducerTest.run(
        nodes,
        TwoLevelSizes.USUAL,
        NONE,
        (group, device, reducer, own) -> {
          int rank = own.rank();
          try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, COUNT)) {
            for (int odd = 0; odd < nodes.length; odd++) {
              int other = odd == 0 ? 1 : 0;
              float[] before = values(rank, COUNT);
              buffer.copyFrom(before);
              for (boolean sizes : new boolean[] {false, true}) {
                int count = sizes && rank == odd ? 3 : COUNT;
                int root = !sizes && rank == odd ? odd : other;
                String text =
                    assertThrows(
                            MismatchedCallException.class,
                            () -> reducer.run(broadcast(buffer.slice(0, count), root)))
                        .getMessage();
                for (int each = 0; each < nodes.length; each++) {
                  int ofRank = sizes && each == odd ? 3 : COUNT;
                  int itsRoot = !sizes && each == odd ? odd : other;
                  String call = "broadcast(FLOAT32[" + ofRank + "], root=" + itsRoot;
                  assertTrue(text.contains("rank " + each + ": " + call), text);
                }
                float[] after = new float[COUNT];
                buffer.copyTo(after);
                assertArrayEquals(before, after);
              }
            }
          }
        });
  }
}

package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests the view of a rank in a job on two nodes, whose processes {@link RankTests} runs. Rank 0 is
 * alone on its node.
 */
@TestInstance(Lifecycle.PER_CLASS)
public abstract class TwoNodesContract {
  /** {@return the reducers to try, the default one first} */
  protected abstract List<String> reducers();

  /** {@return the reducer that one node would choose} */
  protected String needsOneNode() {
    return "shared";
  }

  @Test
  void ranksAreCountedOnTheirNode() {
    try (GradientSync sync = GradientSync.create()) {
      assertEquals(sync.rank() == 0 ? 0 : sync.rank() - 1, sync.localRank());
      assertEquals(sync.rank() == 0 ? 1 : sync.size() - 1, sync.localSize());
    }
  }

  Stream<Arguments> reducersAndCounts() {
    return reducers().stream()
        .flatMap(r -> Stream.of(0, 1, 4_099, 300_001).map(count -> Arguments.of(r, count)));
  }

  @ParameterizedTest
  @MethodSource("reducersAndCounts")
  void averagesHaveTheBitsOfTheSumInRankOrder(String reducer, int count) {
    try (GradientSync sync = GradientSync.builder().reducer(reducer).create();
        DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, count + 3L);
        DeviceBuffer slice = gradient.slice(1, count)) {
      float[] values = new float[count];
      float[] expected = new float[count];
      for (int i = 0; i < count; i++) {
        for (int rank = 0; rank < sync.size(); rank++) {
          float value = (rank + 1) / 3f + i * 0.7f;
          expected[i] = rank == 0 ? value : expected[i] + value;
          values[i] = rank == sync.rank() ? value : values[i];
        }
        expected[i] /= sync.size();
      }
      for (int call = 0; call < 3; call++) {
        slice.copyFrom(values);
        sync.average(slice);
        float[] result = new float[count];
        slice.copyTo(result);
        assertArrayEquals(expected, result);
      }
    }
  }

  @Test
  void whatNeedsOneNodeIsNotChosen() {
    try (GradientSync sync = GradientSync.create()) {
      assertEquals(reducers().get(0), sync.reducer());
      assertTrue(
          sync.alternatives().get(needsOneNode()).contains("several nodes"),
          () -> "" + sync.alternatives());
    }
  }

  /** A part on one node takes what the whole job cannot. Rank 0 is alone on its node. */
  @Test
  void aPartOnOneNodeTakesTheFastestReducerOfANode() {
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1_001);
        GradientSync part = sync.split(Math.min(sync.rank(), 1), sync.rank())) {
      assertEquals(reducers().get(0), sync.reducer());
      assertEquals(needsOneNode(), part.reducer());
      float[] values = new float[1_001];
      for (int round = 0; round < 3; round++) {
        Arrays.fill(values, sync.rank() + round);
        buffer.copyFrom(values); // allocated before the split
        part.average(buffer);
        buffer.copyTo(values);
        float expected = sync.rank() == 0 ? round : sync.size() / 2f + round;
        assertEquals(expected, values[1_000]);
        sync.average(buffer);
      }
    }
  }

  @Test
  void whatNeedsOneNodeSaysSoWhereItIsAskedFor() {
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () -> GradientSync.builder().reducer(needsOneNode()).create());
    assertTrue(e.getMessage().contains("several nodes"), e::toString);
  }
}

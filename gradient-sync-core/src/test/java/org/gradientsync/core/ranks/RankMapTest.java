package org.gradientsync.core.ranks;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class RankMapTest {
  static Stream<Arguments> texts() {
    return Stream.of(
        Arguments.of("rank 7", List.of(7)),
        Arguments.of("ranks 0, 2", List.of(0, 2)),
        Arguments.of("ranks 0-1, 3-4, 9", List.of(0, 1, 3, 4, 9)),
        Arguments.of("ranks 0-254", IntStream.range(0, 255).boxed().toList()),
        Arguments.of(
            "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 120 more",
            IntStream.range(0, 128).map(i -> 2 * i).boxed().toList()));
  }

  @ParameterizedTest
  @MethodSource("texts")
  void runsOfRanksAreShort(String text, List<Integer> ranks) {
    assertEquals(text, RankMap.ranges(ranks));
  }
}

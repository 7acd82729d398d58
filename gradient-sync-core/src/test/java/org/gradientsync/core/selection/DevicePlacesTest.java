package org.gradientsync.core.selection;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DevicePlacesTest {
  /** Ranks 0 to 3 are on one node, 4 and 5 on another. */
  @ParameterizedTest
  @CsvSource({
    "-1 -1 -1 -1 -1 -1, 7 7 7 7 7 7",
    " 1 -1  3 -1  1 -1, 1 0 3 2 1 0",
    " 2  0  1 -1 -1  0, 2 0 1 3 1 0"
  })
  void thoseThatJoinTakeWhatIsFree(String before, String after) {
    String[] own = before.strip().split(" +");
    String[] expected = after.strip().split(" +");
    LocalRanks.run(
        own.length,
        sync -> {
          int rank = sync.rank();
          List<Integer> node = rank < 4 ? List.of(0, 1, 2, 3) : List.of(4, 5);
          int kept = Integer.parseInt(own[rank]);
          int usual = kept < 0 ? 7 : kept;
          int place = DevicePlaces.agree(sync.communicator(), node, usual, kept >= 0);
          assertEquals(Integer.parseInt(expected[rank]), place);
        });
  }
}

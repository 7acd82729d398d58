package org.gradientsync.examples.hybrid;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** Tests the places of the ranks and their groups. */
class GridTest {
  private static final Grid GRID = new Grid(2, 3, 2);

  @Test
  void tensorRanksAreNeighborsThenDataRanks() {
    assertEquals(12, GRID.ranks());
    assertEquals("[0 1] [2 3]", GRID.ranksOf(0));
    assertEquals("[4 5] [6 7]", GRID.ranksOf(1));
    assertEquals("[8 9] [10 11]", GRID.ranksOf(2));
  }

  @Test
  void eachRankHasOnePlace() {
    for (int rank = 0; rank < GRID.ranks(); rank++) {
      assertEquals(rank, GRID.rank(GRID.stage(rank), GRID.dataRank(rank), GRID.tensorRank(rank)));
    }
  }

  @Test
  void groupsAreTheAxesOfTheGrid() {
    LocalRanks.run(
        12,
        sync -> {
          try (Groups groups = new Groups(sync, GRID)) {
            int rank = sync.rank();
            assertEquals(2, groups.tensor().size());
            assertEquals(2, groups.data().size());
            assertEquals(3, groups.pipeline().size());
            assertEquals(rank % 2, groups.tensor().rank());
            assertEquals(rank / 2 % 2, groups.data().rank());
            assertEquals(rank / 4, groups.pipeline().rank());
          }
        });
  }
}

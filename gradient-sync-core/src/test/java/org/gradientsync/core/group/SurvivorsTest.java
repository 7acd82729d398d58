package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which ranks go on when a network is divided, and connections between the parts break. */
@Timeout(60)
class SurvivorsTest {
  /** Some ranks do not reach others. */
  private static final class Divided extends OtherWorld {
    private final IntPredicate reached;

    Divided(IntPredicate reached) {
      this.reached = reached;
    }

    @Override
    public boolean isAlive(int rank) {
      return rank == rank() || reached.test(rank);
    }

    @Override
    public boolean mayLive(int rank) {
      return true;
    }

    @Override
    public void goOnWithout(List<Integer> lost) {
      // it can
    }
  }

  @ParameterizedTest
  @CsvSource({"5,3,3,0", "5,2,0,3", "4,2,2,0", "2,1,1,0"})
  void onePartOfADividedNetworkGoesOn(int ranks, int low, int sizeOfLow, int sizeOfHigh) {
    AtomicIntegerArray sizes = new AtomicIntegerArray(ranks);
    LocalRanks.run(
        ranks,
        sync -> {
          boolean isLow = sync.rank() < low;
          boolean goesOn = (isLow ? sizeOfLow : sizeOfHigh) > 0;
          try (ProcessGroup world = ProcessGroup.world(new Divided(peer -> peer < low == isLow))) {
            if (goesOn) {
              sizes.set(sync.rank(), world.survivors().size());
            } else {
              RankLostException e = assertThrows(RankLostException.class, world::survivors);
              assertTrue(e.getMessage().contains("may do so without this rank"), e.getMessage());
            }
          }
        });
    for (int rank = 0; rank < ranks; rank++) {
      assertEquals(rank < low ? sizeOfLow : sizeOfHigh, sizes.get(rank), "rank=" + rank);
    }
  }

  /** Ranks 1 and 2 reach rank 0, and not each other. One of them is left out, or both. */
  @Test
  void aRankThatAnotherOneDoesNotReachIsLeftOut() {
    AtomicIntegerArray sizes = new AtomicIntegerArray(3);
    LocalRanks.run(
        3,
        sync -> {
          int rank = sync.rank();
          try (ProcessGroup world = ProcessGroup.world(new Divided(peer -> rank * peer == 0))) {
            sizes.set(rank, world.survivors().size());
          } catch (RankLostException e) {
            sizes.set(rank, 0);
          }
        });
    int[] all = IntStream.range(0, 3).map(sizes::get).filter(size -> size > 0).toArray();
    assertTrue(Arrays.stream(all).allMatch(size -> size == all.length), sizes::toString);
  }
}

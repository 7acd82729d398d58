package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which ranks go on when a network is divided, and connections between the parts break. */
@Timeout(60)
class SurvivorsTest {
  /** Ranks below a number do not reach the others. */
  private static final class Divided extends OtherWorld {
    private final int low;

    Divided(int low) {
      this.low = low;
    }

    @Override
    public boolean isAlive(int rank) {
      return rank < low == rank() < low;
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
    CountDownLatch agreed = new CountDownLatch(sizeOfLow + sizeOfHigh);
    LocalRanks.run(
        ranks,
        sync -> {
          boolean goesOn = (sync.rank() < low ? sizeOfLow : sizeOfHigh) > 0;
          try (ProcessGroup world = ProcessGroup.world(new Divided(low))) {
            if (goesOn) {
              sizes.set(sync.rank(), world.survivors().size());
              agreed.countDown();
              agreed.await(30, TimeUnit.SECONDS); // a rank that closes has left
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
}

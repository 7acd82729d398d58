package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntPredicate;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Timeouts;
import org.junit.jupiter.api.RepeatedTest;
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

  /** Ranks 1 and 2 reach rank 0, and not each other. */
  @RepeatedTest(20)
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
    assertEquals(2, sizes.get(0), sizes::toString);
    assertEquals(2, Math.max(sizes.get(1), sizes.get(2)), sizes::toString);
    assertEquals(0, Math.min(sizes.get(1), sizes.get(2)), sizes::toString);
  }

  /** Also when it comes after the end of those that have gone on. */
  @Test
  void aRankThatWasLeftBehindDoesNotGoOnAlone() {
    Duration limit = Duration.ofMillis(200);
    CountDownLatch over = new CountDownLatch(2);
    LocalRanks.run(
        3,
        sync -> {
          ProcessGroup world = ProcessGroup.world(new Divided(peer -> true));
          ProcessGroup group =
              world.split(0, sync.rank(), new Timeouts(limit, limit, Optional.empty()));
          if (sync.rank() == 0) {
            over.await();
            RankLostException e = assertThrows(RankLostException.class, group::survivors);
            assertTrue(e.getMessage().contains("go on without this one"), e.getMessage());
          } else {
            group.survivors().close();
          }
          Resources.closeAll(group, world);
          over.countDown();
        });
  }
}

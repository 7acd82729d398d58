package org.gradientsync.collective;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a rank waits. */
@Timeout(60)
class WaitTest {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

  @Test
  void ranksBeyondTheProcessorsYieldAtOnce() {
    assumeTrue(PROCESSORS < LocalRanks.MAX_RANKS);
    LocalRanks.run(
        PROCESSORS + 1,
        sync -> assertTrue(sync.rank() != 0 || yieldsSoon(LocalRanks.current().orElseThrow())));
  }

  @Test
  void theRanksOfTheWholeNodeCountForAGroupOfSome() {
    assumeTrue(PROCESSORS < LocalRanks.MAX_RANKS);
    LocalRanks.run(
        Math.max(3, PROCESSORS + 1),
        sync -> {
          Group world = LocalRanks.current().orElseThrow();
          int color = Math.min(sync.rank() / 2, 1); // ranks 0 and 1, and the others
          try (Group group = world.split(color, 0, world.patience())) {
            assertTrue(sync.rank() != 0 || yieldsSoon(group));
          }
        });
  }

  @Test
  void ranksWithAProcessorEachDoNotYieldInAShortWait() {
    assumeTrue(PROCESSORS > 1);
    LocalRanks.run(
        2, sync -> assertFalse(sync.rank() == 0 && yieldsSoon(LocalRanks.current().orElseThrow())));
  }

  /** Whether rank 0 yields within a hundred looks at what it waits for. */
  private static boolean yieldsSoon(Group group) {
    boolean[] yields = new boolean[1];
    Message message =
        new Message() {
          private int looks;

          @Override
          public void start() {
            // by rank 1
          }

          @Override
          public boolean test() {
            looks++;
            yields[0] = group.lines().get(1).contains("waits for rank 1");
            return looks == 100;
          }

          @Override
          public void close() {
            // holds nothing
          }
        };
    group.await(message, 1);
    return yields[0];
  }
}

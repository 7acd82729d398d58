package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How often a process checks for requests for reports. */
@Timeout(60)
class WatchTest {
  private static final int GROUPS = 200;
  private static final int PERIODS = 4;

  @TempDir Path folder;

  private record Counts(long looks, long periods) {}

  @Test
  void manyGroupsShareOneLookPerPeriod() {
    Counts counts = count(false);
    assertTrue(counts.looks > 0 && counts.looks <= counts.periods + 1, counts::toString);
  }

  @Test
  void ranksOfOneProcessNeedNoLook() {
    assertEquals(0, count(true).looks);
  }

  /**
   * Runs while rank 0 watches many groups.
   *
   * @param whole whether rank 1 watches them, too; otherwise it stands for another process
   */
  private Counts count(boolean whole) {
    Counts[] result = new Counts[1];
    CountDownLatch made = new CountDownLatch(2);
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          boolean watched = whole || sync.rank() == 0;
          Timeouts timeouts =
              new Timeouts(
                  Settings.DEFAULT_TIMEOUT,
                  Settings.DEFAULT_LATE,
                  watched ? Optional.of(folder) : Optional.empty());
          List<ProcessGroup> groups = new ArrayList<>();
          for (int i = 0; i < GROUPS; i++) {
            groups.add(world.split(0, 0, timeouts));
          }
          made.countDown();
          if (sync.rank() == 0) {
            made.await();
            awaitPeriods(1); // a group may have been incomplete in the first
            long firstPeriod = Watch.PERIODS.get();
            long firstLook = Watch.LOOKS.get();
            awaitPeriods(PERIODS);
            long looks = Watch.LOOKS.get() - firstLook;
            result[0] = new Counts(looks, Watch.PERIODS.get() - firstPeriod);
            over.countDown();
          }
          over.await();
          groups.forEach(ProcessGroup::close);
        });
    return result[0];
  }

  private static void awaitPeriods(int periods) throws InterruptedException {
    long end = Watch.PERIODS.get() + periods;
    while (Watch.PERIODS.get() < end) {
      Thread.sleep(1); // ends when the test times out
    }
  }
}

package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;

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

/** How many folders a process looks for, to see whether reports are requested. */
@Timeout(60)
class WatchTest {
  private static final int GROUPS = 200;

  @TempDir Path folder;

  @Test
  void manyGroupsShareOneLookPerPeriod() {
    assertEquals(1, looks(false));
  }

  @Test
  void ranksOfOneProcessNeedNoLook() {
    assertEquals(0, looks(true));
  }

  /**
   * Looks while rank 0 watches many groups.
   *
   * @param whole whether rank 1 watches them, too; otherwise it stands for another process
   */
  private int looks(boolean whole) {
    int[] looks = new int[1];
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
            looks[0] = Watch.look();
            over.countDown();
          }
          over.await();
          groups.forEach(ProcessGroup::close);
        });
    return looks[0];
  }
}

package org.gradientsync.core.selection;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.GradientSync;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.sync.SyncBuilder;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

class SelectionTest {
  /**
   * The device {@code odd-ranks} is for the odd ranks of a node: in their group they are 0 and 1.
   */
  @Test
  void devicesGoByTheRankInTheJobWhateverTheGroup() {
    LocalRanks.run(
        4,
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          int odd = sync.rank() % 2;
          try (ProcessGroup half = world.split(odd, sync.rank(), world.timeouts())) {
            if (odd == 1) {
              try (GradientSync own = new SyncBuilder().ranks(half).device("odd-ranks").create()) {
                assertEquals(sync.rank() / 2, own.rank());
                assertEquals(2, own.size());
              }
            }
          }
        });
  }
}

package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** What goes over to a sync that takes another one's place. */
class SuccessionTest {
  @Test
  void stopsThatAreAskedOfTheEarlierSyncReachTheOneInItsPlace() {
    LocalRanks.run(
        2,
        first -> {
          try (GradientSync second = first.survivors();
              GradientSync third = second.survivors()) {
            if (third.rank() == 1) {
              first.requestStop();
            }
            assertEquals(third.rank() == 1, ((Admission) third).isStopRequested());
          }
        });
  }
}

package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** The contract of survivors, in host memory. */
class LocalSurvivorsTest extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.device("host");
  }

  @Test
  void aFailureAfterwardsIsThrown() {
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    2,
                    this::options,
                    sync -> {
                      if (sync.rank() == 0) {
                        throw new IllegalStateException("lost");
                      }
                      assertThrows(RankLostException.class, sync::barrier);
                      sync.survivors().close();
                      throw new IllegalStateException("afterwards");
                    }));
    assertEquals("rank 1 failed: java.lang.IllegalStateException: afterwards", e.getMessage());
  }
}

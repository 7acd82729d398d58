package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who handles signals when ranks go on without others; StopIT sends them to processes. */
@Timeout(60)
class StopSignalsTest {
  /** A scheduler signals all ranks, some of which may be slow. */
  @Test
  void aSignalIsExpectedWhenAllRanksStop() throws Exception {
    LocalRanks.run(
        1,
        builder -> builder.stopOnSignal(true),
        sync -> {
          List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 3));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            sync.requestStop(); // as if another rank had got the signal
            buckets.ready(0);
            buckets.finish();
            assertTrue(buckets.stopRequested());
          }
        });
    assertFalse(StopSignals.isSecondNext());
    Signals.raise("USR1"); // would end this JVM
    while (!StopSignals.isSecondNext()) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void theSecondSignalEndsThoseThatWentOnAfterTheFirst() {
    LocalRanks.run(
        2,
        builder -> builder.stopOnSignal(true),
        sync -> {
          sync.barrier();
          if (sync.rank() == 1) {
            throw new IllegalStateException("lost on purpose");
          }
          assertThrows(RankLostException.class, sync::barrier);
          assertFalse(StopSignals.isSecondNext());
          Signals.raise("USR1");
          while (!((Admission) sync).isStopRequested()) {
            LockSupport.parkNanos(1_000_000);
          }
          try (GradientSync next = sync.survivors()) {
            assertTrue(((Admission) next).isStopRequested());
            assertTrue(StopSignals.isSecondNext());
          }
          assertTrue(StopSignals.isSecondNext());
        });
  }
}

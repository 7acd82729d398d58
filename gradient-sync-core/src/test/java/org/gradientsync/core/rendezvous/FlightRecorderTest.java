package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Which of the recent calls are finished. */
class FlightRecorderTest {
  private static FlightRecorder enqueued(int calls) {
    FlightRecorder log = new FlightRecorder();
    for (int i = 0; i < calls; i++) {
      log.next();
      log.enqueued();
    }
    return log;
  }

  private static List<String> outcomes(FlightRecorder log) {
    return log.lines().stream().map(l -> l.replaceAll(".* ago, ", "").split(" ")[0]).toList();
  }

  @Test
  void deviceCompletesCallsUpToTheGivenNumber() {
    FlightRecorder log = enqueued(3);
    assertEquals(3, log.unsettled());
    log.settled(2);
    assertEquals(List.of("took", "took", "enqueued"), outcomes(log));
    assertEquals(3, log.unsettled());
    log.settled(3);
    assertEquals(0, log.unsettled());
    assertEquals(List.of("took", "took", "took"), outcomes(log));
  }

  @Test
  void deviceDoesNotCompleteHostCalls() {
    FlightRecorder log = enqueued(1);
    log.next();
    assertEquals(0, log.unsettled());
    log.finished();
    log.settled(2);
    assertEquals(List.of("enqueued", "took"), outcomes(log));
  }

  /** A completion may arrive late, when its slot holds a newer call. */
  @Test
  void reusedSlotsAreNotMistakenForOldCalls() {
    FlightRecorder log = enqueued(33);
    log.settled(1);
    assertEquals(33, log.unsettled());
    log.settled(0);
    assertEquals(33, log.unsettled());
  }

  @Test
  void nothingIsUnsettledInitiallyOrAfterClear() {
    assertEquals(0, new FlightRecorder().unsettled());
    FlightRecorder log = enqueued(5);
    log.clear();
    assertEquals(0, log.unsettled());
    assertEquals(List.of(), log.lines());
  }
}

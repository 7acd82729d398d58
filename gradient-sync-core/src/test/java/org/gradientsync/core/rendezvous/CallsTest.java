package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashSet;
import java.util.List;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.junit.jupiter.api.Test;

/** Which of the recent calls are finished. */
class CallsTest {
  private static final CollectiveCall BARRIER =
      new CollectiveCall(Kind.BARRIER, null, null, null, RankGroup.NO_RANK);

  private static Calls enqueued(int number) {
    Calls calls = new Calls(new HashSet<>(), 1);
    for (int i = 0; i < number; i++) {
      calls.record(Origin.SYNC, BARRIER);
      calls.enqueuedMessage();
    }
    return calls;
  }

  private static List<String> outcomes(Calls calls) {
    return calls.lines().stream().map(l -> l.replaceAll(".* ago, ", "").split(" ")[0]).toList();
  }

  @Test
  void deviceCompletesCallsUpToTheGivenNumber() {
    Calls calls = enqueued(3);
    assertEquals(3, calls.pending());
    calls.done(2);
    assertEquals(List.of("took", "took", "enqueued"), outcomes(calls));
    assertEquals(3, calls.pending());
    calls.done(3);
    assertEquals(0, calls.pending());
    assertEquals(List.of("took", "took", "took"), outcomes(calls));
  }

  @Test
  void deviceDoesNotCompleteHostCalls() {
    Calls calls = enqueued(1);
    calls.record(Origin.SYNC, BARRIER);
    assertEquals(0, calls.pending());
    calls.finished();
    calls.done(2);
    assertEquals(List.of("enqueued", "took"), outcomes(calls));
  }

  /** A completion may arrive late, when its slot holds a newer call. */
  @Test
  void reusedSlotsAreNotMistakenForOldCalls() {
    Calls calls = enqueued(33);
    calls.done(1);
    assertEquals(33, calls.pending());
    calls.done(0);
    assertEquals(33, calls.pending());
  }

  @Test
  void nothingIsUnsettledInitiallyOrAfterClear() {
    assertEquals(0, enqueued(0).pending());
    Calls calls = enqueued(5);
    calls.countFromHere();
    assertEquals(0, calls.pending());
    assertEquals(List.of(), calls.lines());
  }
}

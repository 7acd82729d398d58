package org.gradientsync.core.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.gradientsync.Communicator;
import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

class AgreementTest {
  @Test
  void oneRanksReasonFailsEveryRank() {
    LocalRanks.run(
        3,
        sync -> {
          Communicator ranks = sync.communicator();
          Agreement.requireAll(ranks, "");
          String reason = sync.rank() == 0 ? "" : "no room, asked by " + sync.rank();
          UnavailableException e =
              assertThrows(UnavailableException.class, () -> Agreement.requireAll(ranks, reason));
          assertEquals("no room, asked by 1 (rank 1)", e.getMessage());
          Agreement.requireAll(ranks, ""); // the ranks can continue
        });
  }

  @Test
  void reasonsAreOneLine() {
    LocalRanks.run(
        2,
        sync -> {
          String reason = sync.rank() == 0 ? "" : "no\nroom\u2028at\u001b[2J all";
          UnavailableException e =
              assertThrows(
                  UnavailableException.class,
                  () -> Agreement.requireAll(sync.communicator(), reason));
          assertEquals("no room at [2J all (rank 1)", e.getMessage());
        });
  }

  @Test
  void aReasonIsNeverEmpty() {
    assertEquals("no room", Agreement.reason(new IllegalArgumentException("no room")));
    assertEquals(
        "java.lang.IllegalStateException: closed",
        Agreement.reason(new IllegalStateException("closed")));
    assertEquals(
        "java.lang.IllegalArgumentException", Agreement.reason(new IllegalArgumentException()));
  }

  @Test
  void longReasonsAreTruncated() {
    LocalRanks.run(
        2,
        sync -> {
          Communicator ranks = sync.communicator();
          UnavailableException e =
              assertThrows(
                  UnavailableException.class, () -> Agreement.requireAll(ranks, "x".repeat(1000)));
          assertEquals("x".repeat(400) + " (rank 0)", e.getMessage());
        });
  }
}

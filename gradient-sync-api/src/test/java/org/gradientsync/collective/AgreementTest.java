package org.gradientsync.collective;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

class AgreementTest {
  @Test
  void oneRanksReasonIsEveryRanks() {
    LocalRanks.run(
        3,
        sync -> {
          GroupCommunicator ranks = (GroupCommunicator) sync.communicator();
          Agreement.requireAll(ranks, "");
          String reason = sync.rank() == 0 ? "" : "no room, asked by " + sync.rank();
          UnavailableException e =
              assertThrows(UnavailableException.class, () -> Agreement.requireAll(ranks, reason));
          assertEquals("no room, asked by 1 (rank 1)", e.getMessage());
          Agreement.requireAll(ranks, ""); // and they go on
        });
  }

  @Test
  void aLongReasonIsCutOff() {
    LocalRanks.run(
        2,
        sync -> {
          GroupCommunicator ranks = (GroupCommunicator) sync.communicator();
          UnavailableException e =
              assertThrows(
                  UnavailableException.class, () -> Agreement.requireAll(ranks, "x".repeat(1000)));
          assertEquals("x".repeat(400) + " (rank 0)", e.getMessage());
        });
  }
}

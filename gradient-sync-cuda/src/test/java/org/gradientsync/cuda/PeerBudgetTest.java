package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How syncs share a GPU. */
class PeerBudgetTest {
  // Numbers that no other test's GPUs have: the shares are the process's.
  private static final int GPU = 1001;
  private static final int OTHER = 1002;

  @Test
  void eachTakesAHalfOfWhatIsLeft() {
    try (PeerBudget.Share first = PeerBudget.take(GPU);
        PeerBudget.Share second = PeerBudget.take(GPU);
        PeerBudget.Share third = PeerBudget.take(GPU)) {
      assertEquals(List.of(2, 4, 8), List.of(first.parts(), second.parts(), third.parts()));
    }
  }

  @Test
  void whatIsGivenBackIsTakenAgain() {
    PeerBudget.Share first = PeerBudget.take(GPU);
    PeerBudget.Share second = PeerBudget.take(GPU);
    first.close();
    try (PeerBudget.Share again = PeerBudget.take(GPU);
        PeerBudget.Share third = PeerBudget.take(GPU)) {
      assertEquals(2, again.parts());
      assertEquals(8, third.parts());
    }
    second.close();
    try (PeerBudget.Share all = PeerBudget.take(GPU)) {
      assertEquals(2, all.parts());
    }
  }

  @Test
  void everyGpuIsSharedForItself() {
    try (PeerBudget.Share here = PeerBudget.take(GPU);
        PeerBudget.Share there = PeerBudget.take(OTHER)) {
      assertEquals(2, here.parts());
      assertEquals(2, there.parts());
    }
  }

  @Test
  void manySyncsGetSmallSharesAndNeverLargeOnes() {
    List<PeerBudget.Share> shares = new ArrayList<>();
    try {
      int before = 1;
      for (int i = 0; i < 40; i++) {
        PeerBudget.Share share = PeerBudget.take(GPU);
        shares.add(share);
        assertTrue(share.parts() >= before, "share " + i + ": " + share.parts());
        before = share.parts();
      }
    } finally {
      shares.forEach(PeerBudget.Share::close);
    }
  }
}

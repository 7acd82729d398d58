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
  void sharesFitBesideEachOther() {
    try (PeerBudget.Share first = PeerBudget.take(GPU);
        PeerBudget.Share second = PeerBudget.take(GPU);
        PeerBudget.Share third = PeerBudget.take(GPU)) {
      assertEquals(List.of(0, 1, 2), List.of(first.place(), second.place(), third.place()));
    }
    assertEquals(297, PeerBudget.blocks(0, 396));
    assertEquals(49, PeerBudget.blocks(1, 396));
    assertEquals(24, PeerBudget.blocks(2, 396));
    int all = 0;
    for (int place = 0; place < 7; place++) {
      all += PeerBudget.blocks(place, 396);
    }
    assertTrue(all <= 396, "" + all);
  }

  @Test
  void whatIsGivenBackIsTakenAgain() {
    PeerBudget.Share first = PeerBudget.take(GPU);
    PeerBudget.Share second = PeerBudget.take(GPU);
    first.close();
    try (PeerBudget.Share again = PeerBudget.take(GPU);
        PeerBudget.Share third = PeerBudget.take(GPU)) {
      assertEquals(0, again.place());
      assertEquals(2, third.place());
    }
    second.close();
    try (PeerBudget.Share all = PeerBudget.take(GPU)) {
      assertEquals(0, all.place());
    }
  }

  @Test
  void everyGpuIsSharedForItself() {
    try (PeerBudget.Share here = PeerBudget.take(GPU);
        PeerBudget.Share there = PeerBudget.take(OTHER)) {
      assertEquals(0, here.place());
      assertEquals(0, there.place());
    }
  }

  @Test
  void manySyncsGetSmallSharesAndNeverLargeOnes() {
    List<PeerBudget.Share> shares = new ArrayList<>();
    try {
      int before = 396;
      for (int i = 0; i < 40; i++) {
        PeerBudget.Share share = PeerBudget.take(GPU);
        shares.add(share);
        int blocks = PeerBudget.blocks(share.place(), 396);
        assertTrue(blocks >= 1 && blocks <= before, "share " + i + ": " + blocks);
        before = blocks;
      }
    } finally {
      shares.forEach(PeerBudget.Share::close);
    }
  }
}

package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how syncs share a GPU. */
class PeerBudgetTest {
  // Shares belong to the process, so these GPU numbers differ from those of all other tests.
  private static final int GPU = 1001;
  private static final int OTHER = 1002;

  @Test
  void sharesFitTogether() {
    try (PeerBudget.Share first = PeerBudget.take(GPU, 0);
        PeerBudget.Share second = PeerBudget.take(GPU, 0);
        PeerBudget.Share third = PeerBudget.take(GPU, 0)) {
      assertEquals(List.of(0, 1, 2), List.of(first.place(), second.place(), third.place()));
    }
  }

  /** The share of an SM that one block of a kernel takes, in parts of {@link #WHOLE}. */
  private enum Kernel {
    TWO_SHOT(2),
    TWO_SHOT_UNROLLED(3),
    STAGED(6);

    private final int parts;

    Kernel(int parts) {
      this.parts = parts;
    }
  }

  private static final int WHOLE = 6;

  /** Places blocks as a GPU does: on the SM with the most room. */
  private static void launch(int[] room, Kernel kernel, int place) {
    int blocks = PeerBudget.blocks(place, WHOLE / kernel.parts, room.length);
    for (int i = 0; i < blocks; i++) {
      int roomiest = 0;
      for (int p = 1; p < room.length; p++) {
        roomiest = room[p] > room[roomiest] ? p : roomiest;
      }
      assertTrue(room[roomiest] >= kernel.parts, kernel + " of sync " + place + ", block " + i);
      room[roomiest] -= kernel.parts;
    }
  }

  /** All kernels of several syncs must fit at once, in any order of launch. */
  @ParameterizedTest
  @ValueSource(ints = {132, 108, 80, 72})
  void allSyncsKernelsFitTogether(int sms) {
    Random random = new Random(sms);
    for (int trial = 0; trial < 2000; trial++) {
      List<Integer> places = new ArrayList<>(List.of(0, 1, 2, 3, 4, 5));
      Collections.shuffle(places, random);
      int[] room = new int[sms];
      Arrays.fill(room, WHOLE);
      for (int place : places) {
        int kernels = PeerBudget.takesWhole(place) ? Kernel.values().length : 2;
        launch(room, Kernel.values()[random.nextInt(kernels)], place);
      }
    }
  }

  @Test
  void whatIsGivenBackIsTakenAgain() {
    PeerBudget.Share first = PeerBudget.take(GPU, 0);
    PeerBudget.Share second = PeerBudget.take(GPU, 0);
    first.close();
    try (PeerBudget.Share again = PeerBudget.take(GPU, 0);
        PeerBudget.Share third = PeerBudget.take(GPU, 0)) {
      assertEquals(0, again.place());
      assertEquals(2, third.place());
    }
    second.close();
    try (PeerBudget.Share all = PeerBudget.take(GPU, 0)) {
      assertEquals(0, all.place());
    }
  }

  @Test
  void everyGpuIsSharedForItself() {
    try (PeerBudget.Share here = PeerBudget.take(GPU, 0);
        PeerBudget.Share there = PeerBudget.take(OTHER, 0);
        PeerBudget.Share ofAnotherRank = PeerBudget.take(GPU, 1)) {
      assertEquals(0, here.place());
      assertEquals(0, there.place());
      assertEquals(0, ofAnotherRank.place());
    }
  }

  @Test
  void manySyncsGetSmallSharesAndNeverLargeOnes() {
    List<PeerBudget.Share> shares = new ArrayList<>();
    try {
      int before = 198;
      for (int i = 0; i < 40; i++) {
        PeerBudget.Share share = PeerBudget.take(GPU, 0);
        shares.add(share);
        int blocks = PeerBudget.blocks(share.place(), 3, 132);
        assertTrue(blocks >= 1 && blocks <= before, "share " + i + ": " + blocks);
        before = blocks;
      }
    } finally {
      shares.forEach(PeerBudget.Share::close);
    }
  }
}

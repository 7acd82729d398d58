package org.gradientsync.cuda;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Shares a GPU among the syncs of this process, so that the kernels of all of them can run at once:
 * those of one sync wait for other ranks, who may be in another sync's call. The first takes three
 * quarters of the GPU, the next an eighth, the next a sixteenth, and so on.
 */
final class PeerBudget {
  private static final Map<Integer, BitSet> taken = new HashMap<>();

  private PeerBudget() {}

  /**
   * A share of a GPU.
   *
   * @param place 0 has the largest share
   */
  record Share(int ordinal, int place) implements AutoCloseable {
    @Override
    public void close() {
      synchronized (taken) {
        taken.get(ordinal).clear(place);
      }
    }
  }

  /** How many blocks a share may launch, at least 1, of those that the GPU holds at once. */
  static int blocks(int place, int fitting) {
    return Math.max(
        1, place == 0 ? fitting * 3 / 4 : fitting >> Math.min(place + 2, Integer.SIZE - 1));
  }

  static Share take(int ordinal) {
    synchronized (taken) {
      BitSet places = taken.computeIfAbsent(ordinal, o -> new BitSet());
      int place = places.nextClearBit(0);
      places.set(place);
      return new Share(ordinal, place);
    }
  }
}

package org.gradientsync.cuda;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Shares a GPU among the syncs of this process, so that the kernels of all of them can run at once:
 * those of one sync wait for other ranks, who may be in another sync's call. The first takes a half
 * of the GPU, the next a quarter, and so on.
 */
final class PeerBudget {
  private static final int SMALLEST = 30; // as a power of two
  private static final Map<Integer, BitSet> taken = new HashMap<>();

  private PeerBudget() {}

  /** A share of a GPU. */
  record Share(int ordinal, int place) implements AutoCloseable {
    /** One part of how many it is. */
    int parts() {
      return 1 << Math.min(place + 1, SMALLEST);
    }

    @Override
    public void close() {
      synchronized (taken) {
        taken.get(ordinal).clear(place);
      }
    }
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

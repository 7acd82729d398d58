package org.gradientsync.cuda.internal.peer;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Shares a GPU among the syncs of this process, so that the kernels of all of them can run at once:
 * those of one sync wait for other ranks, who may be in another sync's call. A GPU spreads blocks
 * over its SMs as evenly as it can. So the first sync's blocks leave every second SM half empty, or
 * half of the SMs empty, if one of its blocks fills an SM. The blocks of all other syncs together
 * are no more than half of the SMs, and none of them takes more than half an SM; see {@link
 * #takesWhole}.
 */
final class PeerBudget {
  private static final Map<Part, BitSet> taken = new HashMap<>();

  private PeerBudget() {}

  /** A GPU, or what one of the ranks has that share it: the same part of its SMs each. */
  private record Part(int ordinal, int turn) {}

  /**
   * A share of a GPU, or of a rank's part.
   *
   * @param place 0 has the largest share
   */
  record Share(Part part, int place) implements AutoCloseable {
    @Override
    public void close() {
      synchronized (taken) {
        taken.get(part).clear(place);
      }
    }
  }

  /** Whether a share may launch kernels of which an SM holds one block only. */
  static boolean takesWhole(int place) {
    return place == 0;
  }

  /**
   * How many blocks a share may launch, at least 1: from the tenth sync on that may be too many.
   *
   * @param perSm how many one of the GPU's SMs holds at once
   * @param sms those of the GPU, divided by the ranks that share it
   */
  static int blocks(int place, int perSm, int sms) {
    int blocks =
        place > 0
            ? sms >> Math.min(place + 1, Integer.SIZE - 1)
            : perSm > 1 ? sms * 3 / 2 : sms / 2;
    return Math.max(1, blocks);
  }

  /**
   * Takes the largest share that is left.
   *
   * @param turn which of the ranks that share the GPU, from 0
   */
  static Share take(int ordinal, int turn) {
    synchronized (taken) {
      Part part = new Part(ordinal, turn);
      BitSet places = taken.computeIfAbsent(part, p -> new BitSet());
      int place = places.nextClearBit(0);
      places.set(place);
      return new Share(part, place);
    }
  }
}

package org.gradientsync.cuda.internal.peer;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Divides a GPU among the syncs of this process, so that the kernels of all of them can run at
 * once. They must, because kernels wait for other ranks, which may be in another sync's call.
 *
 * <p>A GPU spreads blocks over its SMs as evenly as it can. So the first sync's blocks leave every
 * second SM half empty or, if one block fills an SM, half of the SMs empty. All other syncs
 * together have at most half as many blocks as there are SMs, and each of these blocks takes at
 * most half an SM; see {@link #takesWhole}.
 */
final class PeerBudget {
  private static final Map<Part, BitSet> taken = new HashMap<>();

  private PeerBudget() {}

  /** A GPU or, if ranks share it, one rank's part of it. All parts have the same number of SMs. */
  private record Part(int ordinal, int turn) {}

  /**
   * One sync's share of a part.
   *
   * @param place 0 for the largest share
   */
  record Share(Part part, int place) implements AutoCloseable {
    @Override
    public void close() {
      synchronized (taken) {
        taken.get(part).clear(place);
      }
    }
  }

  /** Whether a share may launch kernels with blocks that fill an SM each. */
  static boolean takesWhole(int place) {
    return place == 0;
  }

  /**
   * The number of blocks that a share may launch, at least 1. From the tenth sync on, the blocks
   * may no longer all fit.
   *
   * @param perSm the number of blocks that an SM holds at once
   * @param sms the number of SMs of the GPU, divided by the number of ranks that share it
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
   * @param turn this rank's index among the ranks that share the GPU, from 0
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

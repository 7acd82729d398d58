package org.gradientsync.core.selection;

import java.nio.LongBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.stream.LongStream;
import org.gradientsync.Communicator;

/** Which of a node's ranks gets which of its devices. */
final class DevicePlaces {
  private static final int NONE = -1;

  private DevicePlaces() {}

  /**
   * Agrees on places. If some ranks have a device, these keep their places, and the others get
   * those that are free, in the order of their numbers. Otherwise each has its usual one.
   * Collective.
   *
   * @param node the ranks of this rank's node
   * @param usual this rank's place
   * @param has whether it has a device there
   * @return this rank's place
   */
  static int agree(Communicator communicator, List<Integer> node, int usual, boolean has) {
    LongBuffer places = LongBuffer.allocate(communicator.size());
    communicator.allGather(LongBuffer.wrap(new long[] {has ? usual : NONE}), places);
    if (LongStream.of(places.array()).allMatch(place -> place == NONE)) {
      return usual;
    }
    BitSet taken = new BitSet();
    node.stream()
        .mapToInt(peer -> (int) places.get(peer))
        .filter(p -> p != NONE)
        .forEach(taken::set);
    int place = usual;
    for (int peer : node) {
      if (!has && places.get(peer) == NONE && peer <= communicator.rank()) {
        place = taken.nextClearBit(0);
        taken.set(place);
      }
    }
    return place;
  }
}

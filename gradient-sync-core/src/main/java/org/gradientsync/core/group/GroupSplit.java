package org.gradientsync.core.group;

import java.nio.LongBuffer;
import java.security.SecureRandom;
import java.util.BitSet;
import java.util.Comparator;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * How the ranks of a group agree on its subgroups. Another thread may split another group of the
 * same ranks, and the ranks may run the two in different orders. So each rank reserves the lowest
 * tag range that is free there and may be free on all; if they are not the same, all release theirs
 * and go on from the highest.
 */
record GroupSplit(ProcessGroup group, Exchange exchange, Origin origin) {
  private static final int WORDS = 5; // of what each rank tells the others
  private static final int COLOR = 0;
  private static final int KEY = 1;
  private static final int NUMBER = 2; // random
  private static final int OPEN = 3; // its number of tag ranges in use
  private static final int FREE = 4; // its lowest that is not
  private static final CollectiveCall SPLIT =
      new CollectiveCall(Kind.ALL_GATHER, null, null, null, RankMap.NO_RANK);
  private static final SecureRandom RANDOM = new SecureRandom();

  /** The messages of the subgroup that this rank joins; null if its color is negative. */
  GroupTransport agree(int color, int key) {
    BitSet used = group.job().usedContexts();
    long[] own = {color, key, RANDOM.nextLong(), used.cardinality(), used.nextClearBit(0)};
    long[] all = new long[WORDS * group.size()];
    int[] context = new int[1];
    group.run(
        origin,
        SPLIT,
        call -> {
          allGather(own, all);
          context[0] = reserve(all);
        });
    if (group.parts().key().isWorld()) { // from two numbers, so that it reveals no group's id
      group.job().setNumber(all[NUMBER] ^ all[all.length - WORDS + NUMBER]);
    }
    if (context[0] >= Job.MAX_GROUPS) {
      throw tooMany(ofEach(all, OPEN));
    }
    if (color >= 0) {
      return part(all, color, context[0]);
    }
    group.job().release(context[0]);
    return null;
  }

  private void allGather(long[] own, long[] all) {
    exchange.allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
  }

  /** Returns {@link Job#MAX_GROUPS} or more if no range is free. */
  private int reserve(long[] all) {
    int lowest = (int) LongStream.of(ofEach(all, FREE)).max().getAsLong();
    long[] reserved = new long[group.size()];
    while (lowest < Job.MAX_GROUPS) {
      int own = group.job().reserveFrom(lowest);
      allGather(new long[] {own}, reserved);
      lowest = (int) LongStream.of(reserved).max().getAsLong();
      if (LongStream.of(reserved).min().getAsLong() == lowest) {
        return lowest;
      }
      group.job().release(own);
      LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(2_000_000));
    }
    return lowest;
  }

  private long[] ofEach(long[] all, int word) {
    return group.ranks().all().stream().mapToLong(peer -> all[peer * WORDS + word]).toArray();
  }

  private GradientSyncException tooMany(long[] open) {
    int holder = IntStream.range(0, open.length).reduce(0, (a, b) -> open[b] > open[a] ? b : a);
    String name = group.ranks().name(holder);
    return new GradientSyncException(
        "too many communicators are open: rank=%s, open here=%s, most=%s on %s, limit=%s for all ranks together; close some where they are open"
            .formatted(group.rank(), open[group.rank()], open[holder], name, Job.MAX_GROUPS));
  }

  private GroupTransport part(long[] all, int color, int context) {
    // By key; the sort is stable, so ranks with the same key keep their order.
    int[] peers =
        group.ranks().all().stream()
            .filter(peer -> all[peer * WORDS + COLOR] == color)
            .sorted(Comparator.comparingLong(peer -> all[peer * WORDS + KEY]))
            .mapToInt(Integer::intValue)
            .toArray();
    GroupKey newKey = new GroupKey(context, all[peers[0] * WORDS + NUMBER]);
    return group.messages().part(newKey, peers);
  }
}

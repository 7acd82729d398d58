package org.gradientsync.core.group;

import java.nio.LongBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * How the ranks of a group agree on its subgroups. Another thread may split another group of the
 * same ranks, and the ranks may run the two in different orders. So the ranks propose a tag range,
 * each reserves it if it is still free there, and all release it if it was not free on every rank.
 */
record GroupSplit(
    WatchedGroup group, CallMatcher matcher, Exchange exchange, Job job, Origin origin) {
  private static final int FIXED = 3; // words of a proposal before the bits
  private static final int WORDS = FIXED + Job.MAX_GROUPS / Long.SIZE;
  private static final int COLOR = 0;
  private static final int KEY = 1;
  private static final int NUMBER = 2;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** The messages of the subgroup that this rank joins; null if its color is negative. */
  GroupTransport agree(int color, int key) {
    while (true) {
      long[] all = proposals(color, key);
      if (group.key().isWorld()) { // from two numbers, so that it reveals no group's id
        job.setNumber(all[NUMBER] ^ all[all.length - WORDS + NUMBER]);
      }
      int context = lowestFree(all);
      boolean taken = job.tryReserve(context);
      long[] outcomes = allGather(new long[] {taken ? 1 : 0});
      if (Arrays.stream(outcomes).min().getAsLong() == 1) {
        if (color >= 0) {
          return part(all, color, context);
        }
        job.release(context);
        return null;
      }
      if (taken) {
        job.release(context);
      }
      LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(2_000_000));
    }
  }

  /** For each rank: color, key, a random number, and one bit for each tag range in use. */
  private long[] proposals(int color, int key) {
    long[] own = new long[WORDS];
    own[COLOR] = color;
    own[KEY] = key;
    own[NUMBER] = RANDOM.nextLong();
    long[] used = job.usedContexts().toLongArray();
    System.arraycopy(used, 0, own, FIXED, used.length);
    matcher.meet(origin, Kind.ALL_GATHER, CallRecord.NO_ELEMENT, 0, CallRecord.NO_ROOT);
    long[] all = allGather(own);
    group.calls().finished();
    return all;
  }

  private long[] allGather(long[] own) {
    long[] all = new long[own.length * group.size()];
    exchange.allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    return all;
  }

  private int lowestFree(long[] all) {
    long[] used = new long[WORDS - FIXED];
    for (int i = 0; i < all.length; i++) {
      if (i % WORDS >= FIXED) {
        used[i % WORDS - FIXED] |= all[i];
      }
    }
    int free = BitSet.valueOf(used).nextClearBit(0);
    if (free >= Job.MAX_GROUPS) {
      throw tooMany(all);
    }
    return free;
  }

  private GradientSyncException tooMany(long[] all) {
    int[] open = new int[group.size()];
    int holder = 0;
    for (int peer = 0; peer < open.length; peer++) {
      for (int i = peer * WORDS + FIXED; i < (peer + 1) * WORDS; i++) {
        open[peer] += Long.bitCount(all[i]);
      }
      holder = open[peer] > open[holder] ? peer : holder;
    }
    return new GradientSyncException(
        "too many communicators are open: rank=%s, open here=%s, most=%s on %s, limit=%s for all ranks together; close some where they are open"
            .formatted(
                group.rank(),
                open[group.rank()],
                open[holder],
                group.ranks().name(holder),
                Job.MAX_GROUPS));
  }

  private GroupTransport part(long[] all, int color, int context) {
    List<Integer> joining = new ArrayList<>();
    for (int peer = 0; peer < group.size(); peer++) {
      if (all[peer * WORDS + COLOR] == color) {
        joining.add(peer);
      }
    }
    // By key; the sort is stable, so ranks with the same key keep their order.
    joining.sort((a, b) -> Long.compare(all[a * WORDS + KEY], all[b * WORDS + KEY]));
    long id = all[joining.get(0) * WORDS + NUMBER];
    int[] peers = joining.stream().mapToInt(Integer::intValue).toArray();
    return group.messages().part(new GroupKey(context, id), peers);
  }
}

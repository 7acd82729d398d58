package org.gradientsync.internal.group;

import java.nio.LongBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.DataType;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.diagnosis.Bells;
import org.gradientsync.internal.diagnosis.WatchedGroup;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.ranks.ContextIds;

/**
 * How the ranks of a group agree on the groups that it is divided into. Another thread may be
 * dividing another group of the same ranks, and the ranks may run the two in different orders. So a
 * tag range is proposed, taken by each rank if it is still free there, and given back by all if it
 * was not free on all.
 */
final class GroupSplit {
  private static final int FIXED = 4; // words of a proposal, before its bits
  private static final int WORDS = FIXED + ContextIds.LIMIT / Long.SIZE;
  private static final int COLOR = 0;
  private static final int KEY = 1;
  private static final int GENERATION = 2;
  private static final int NUMBER = 3;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final WatchedGroup group;
  private final CallMatcher matcher;
  private final Exchange exchange;
  private final ContextIds contexts;
  private final Bells bells;

  /** Splits one group; the caller holds its lock. */
  GroupSplit(
      WatchedGroup group,
      CallMatcher matcher,
      Exchange exchange,
      ContextIds contexts,
      Bells bells) {
    this.group = group;
    this.matcher = matcher;
    this.exchange = exchange;
    this.contexts = contexts;
    this.bells = bells;
  }

  private boolean isWorld() {
    return group.key().context() == ContextIds.WORLD;
  }

  /**
   * What a rank joins.
   *
   * @param context its tag range
   * @param generation tells it from earlier owners of the tag range
   * @param id random, and the same on all its ranks
   * @param peers its ranks in their order, by their numbers in the divided group
   * @param rank this rank's number in it
   */
  record Part(int context, long generation, long id, int[] peers, int rank) {}

  /**
   * Agrees. The rules are those of {@link org.gradientsync.Communicator#split}.
   *
   * @return what this rank joins, or null if its color is negative
   */
  Part agree(int color, int key) {
    while (true) {
      long[] all = proposals(color, key);
      if (isWorld()) { // of two numbers, so that it tells no group's id
        bells.nameJob(all[NUMBER] ^ all[all.length - WORDS + NUMBER]);
      }
      int context = lowestFree(all);
      boolean taken = contexts.tryReserve(context);
      long[] outcomes = allGather(new long[] {taken ? 1 : 0});
      if (Arrays.stream(outcomes).min().getAsLong() == 1) {
        if (color >= 0) {
          return part(all, color, context);
        }
        contexts.release(context);
        return null;
      }
      if (taken) {
        contexts.release(context);
      }
      LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(2_000_000));
    }
  }

  /**
   * Of each rank: color, key, its newest generation, a random number, and a bit for each tag range
   * in use there.
   */
  private long[] proposals(int color, int key) {
    long[] own = new long[WORDS];
    own[COLOR] = color;
    own[KEY] = key;
    own[GENERATION] = contexts.generation();
    own[NUMBER] = RANDOM.nextLong();
    System.arraycopy(contexts.used(), 0, own, FIXED, WORDS - FIXED);
    Call.Kind kind = isWorld() ? Call.Kind.CREATE : Call.Kind.SPLIT; // what the user called
    matcher.meet(kind, Call.element((DataType) null), 0, null, Call.NO_ROOT);
    long[] all = allGather(own);
    group.calls().log().finished();
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
    if (free >= ContextIds.LIMIT) {
      throw new GradientSyncException(
          "too many communicators are open: rank="
              + group.rank()
              + ", limit="
              + ContextIds.LIMIT
              + "; close some");
    }
    return free;
  }

  private Part part(long[] all, int color, int context) {
    long generation = 0;
    List<Integer> joining = new ArrayList<>();
    for (int peer = 0; peer < group.size(); peer++) {
      generation = Math.max(generation, all[peer * WORDS + GENERATION] + 1);
      if (all[peer * WORDS + COLOR] == color) {
        joining.add(peer);
      }
    }
    contexts.advanceTo(generation);
    // By key; those of one key stay in the order that they have here.
    joining.sort((a, b) -> Long.compare(all[a * WORDS + KEY], all[b * WORDS + KEY]));
    long id = all[joining.get(0) * WORDS + NUMBER];
    int[] peers = joining.stream().mapToInt(Integer::intValue).toArray();
    return new Part(context, generation, id, peers, joining.indexOf(group.rank()));
  }
}

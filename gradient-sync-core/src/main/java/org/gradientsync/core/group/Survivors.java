package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.ContextIds;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Timeouts;

/**
 * How the ranks of a group that is broken agree on those that are left. Shared by the group and by
 * all groups of survivors that come after it, so that ranks agree although some of them have seen
 * one loss more than others. Ranks have the numbers of the first group.
 *
 * <p>The lowest rank that is left leads. All others join it and say whom they miss. It proposes the
 * members and a tag range, all of them reserve the range and agree, and it commits. If the leader
 * is lost, the next one leads. A rank that has committed with a leader that is lost afterwards
 * cannot finish a call in the new group, as the others do not join it, and so comes back here.
 *
 * <p>Two-phase commit with a new leader after a loss: D. Skeen, "Nonblocking commit protocols",
 * SIGMOD 1981. It needs that a rank which is taken for lost is: transports know the processes that
 * have died. Between machines a connection that breaks counts as that, so a network that divides
 * them lets both sides go on. Ranks that live and do not come are given up after the time-out, if
 * more of those that may live have come.
 */
final class Survivors {
  private static final int TYPE = 0;
  private static final int CONTEXT = 4;
  private static final int BALLOT = 8;
  private static final int GENERATION = 16;
  private static final int ID = 24;
  private static final int USED = 32;
  private static final int GONE = USED + ContextIds.LIMIT / Byte.SIZE;

  private static final int JOIN = 1;
  private static final int PROPOSE = 2;
  private static final int AGREE = 3;
  private static final int REFUSE = 4; // the tag range is not free here
  private static final int COMMIT = 5;

  private static final long PARK_NANOS = 100_000;
  private static final int LEADERS_WAITS = 3; // a leader waits for others up to two times
  private static final int NONE = -1;

  private final GroupTransport messages;
  private final Job job;
  private final BitSet gone = new BitSet();
  private final BitSet givenUp = new BitSet(); // of those: they may live
  private final Map<Integer, Letter> letters = new HashMap<>();
  private final int bytes;
  private long ballot; // of this rank's last proposal
  private int reserved = NONE; // tag range

  // Of the current agreement.
  private IntPredicate lost;
  private Timeouts timeouts;
  private WaitClock time;

  /** Receives the messages of another rank. */
  private final class Letter {
    ByteBuffer next; // or null
    final ByteBuffer memory = HostBuffers.allocate(bytes);
    final Message message;

    Letter(int peer) {
      message = messages.receiver(memory, peer, Channel.SURVIVORS);
      message.start();
    }
  }

  /**
   * @param messages of the first group
   */
  Survivors(GroupTransport messages, Job job) {
    this.messages = messages;
    this.job = job;
    bytes = GONE + words(messages.size()) * Long.BYTES;
  }

  private static int words(int ranks) {
    return (ranks + Long.SIZE - 1) / Long.SIZE;
  }

  /** The first group's ranks. */
  RankMap ranks() {
    return messages.ranks();
  }

  private int rank() {
    return messages.rank();
  }

  /**
   * Agrees on the ranks that are left.
   *
   * @param group of those that were left until now
   * @param state the group's; throws if this process is ending
   * @return the new group, whose peers have the numbers of the first group
   * @throws RankLostException if the others have gone on without this rank, or too few have come
   */
  GroupSplit.Part agree(WatchedGroup group, GroupState state, Timeouts limits) {
    lost =
        peer -> {
          state.requireNotEnding();
          return isLost(group, ranks().worldRank(peer));
        };
    timeouts = limits;
    time = new WaitClock();
    try {
      while (true) {
        look();
        requireWanted();
        int leader = gone.nextClearBit(0);
        GroupSplit.Part part = leader == rank() ? lead() : follow(leader);
        if (part != null) {
          reserved = NONE; // it is the group's now
          return part;
        }
      }
    } finally {
      release();
    }
  }

  /** Whether a rank of the job has died, or has left. */
  private boolean isLost(WatchedGroup group, int worldRank) {
    int peer = group.ranks().find(worldRank);
    return peer == RankMap.NO_RANK
        || group.liveness().isUnreachable(peer)
        || job.liveness().hasLeft(worldRank);
  }

  /** The ranks of the first group that an agreement leaves out, by their numbers in the job. */
  int[] without(GroupSplit.Part part) {
    return ranks().all().stream()
        .filter(peer -> IntStream.of(part.peers()).noneMatch(own -> own == peer))
        .mapToInt(ranks()::worldRank)
        .toArray();
  }

  private void look() {
    for (int peer = gone.nextClearBit(0);
        peer < messages.size();
        peer = gone.nextClearBit(peer + 1)) {
      if (peer != rank() && lost.test(peer)) {
        gone.set(peer);
      }
    }
  }

  /** Throws if another rank has said that it goes on without this one. */
  private void requireWanted() {
    for (int peer = 0; peer < rank(); peer++) {
      ByteBuffer letter = peek(peer);
      if (letter != null) {
        requireWanted(letter);
      }
    }
  }

  private void requireWanted(ByteBuffer letter) {
    if (isGone(letter, rank())) {
      throw new RankLostException(
          "the other ranks go on without this one, which did not come in time: rank=" + rank());
    }
  }

  // The leader.

  private GroupSplit.Part lead() {
    BitSet joined = new BitSet();
    BitSet used = new BitSet();
    long generation = 0;
    while (true) {
      collect(JOIN, NONE, joined, used);
      release();
      used.or(BitSet.valueOf(job.contexts().used()));
      int context = used.nextClearBit(0);
      if (context >= ContextIds.LIMIT) {
        throw new RankLostException(
            "cannot go on: all "
                + ContextIds.LIMIT
                + " tag ranges are in use, rank="
                + rank()
                + "; close communicators and syncs that are not needed");
      }
      if (!reserve(context)) {
        continue;
      }
      generation = Math.max(generation, job.contexts().generation()) + 1;
      job.contexts().advanceTo(generation);
      long id = ThreadLocalRandom.current().nextLong();
      ballot++;
      BitSet members = members();
      requireMost(members);
      tell(members, PROPOSE, context, generation, id);
      BitSet agreed = new BitSet();
      if (!collect(AGREE, ballot, agreed, used) || !members.equals(members())) {
        continue;
      }
      tell(members, COMMIT, context, generation, id);
      tell(givenUp, COMMIT, context, generation, id); // if they come later
      return part(members, context, generation, id);
    }
  }

  private BitSet members() {
    BitSet members = new BitSet();
    members.set(0, messages.size());
    members.andNot(gone);
    return members;
  }

  private void tell(BitSet members, int type, int context, long generation, long id) {
    for (int peer = members.nextSetBit(0); peer >= 0; peer = members.nextSetBit(peer + 1)) {
      if (peer != rank()) {
        send(peer, type, context, ballot, generation, id);
      }
    }
  }

  /**
   * Waits until all other members have sent a message of one type.
   *
   * @param answered those that have; added to
   * @param used the tag ranges in use; added to
   * @return false if a rank refuses the tag range, or one was lost
   */
  private boolean collect(int type, long number, BitSet answered, BitSet used) {
    int before = gone.cardinality();
    long since = time.look();
    answered.set(rank());
    while (true) {
      look();
      BitSet missing = members();
      missing.andNot(answered);
      if (type == AGREE && gone.cardinality() > before) {
        return false;
      }
      if (missing.isEmpty()) {
        return true;
      }
      for (int peer = missing.nextSetBit(0); peer >= 0; peer = missing.nextSetBit(peer + 1)) {
        ByteBuffer letter = read(peer);
        if (letter == null) {
          continue;
        }
        used.or(used(letter));
        addGone(letter);
        int kind = letter.getInt(TYPE);
        if (kind == type && (type == JOIN || letter.getLong(BALLOT) == number)) {
          answered.set(peer);
        } else if (kind == REFUSE && letter.getLong(BALLOT) == number) {
          return false;
        }
        time.look();
      }
      if (time.look() - since > timeouts.timeoutNanos()) {
        gone.or(missing);
        givenUp.or(missing);
      }
      pause();
    }
  }

  /** Throws if the ranks that are taken for lost, and may live, are as many as those that come. */
  private void requireMost(BitSet members) {
    BitSet silent = new BitSet();
    for (int peer = gone.nextSetBit(0); peer >= 0; peer = gone.nextSetBit(peer + 1)) {
      silent.set(peer, !lost.test(peer));
    }
    if (!silent.isEmpty() && members.cardinality() <= silent.cardinality()) {
      throw new RankLostException(
          "timed out: "
              + messages.ranks().names(silent.stream().boxed().toList())
              + " did not come to go on together, and most of the ranks that may live have to:"
              + " came="
              + members.cardinality()
              + ", rank="
              + rank()
              + ", waited="
              + Amounts.time(timeouts.timeout()));
    }
  }

  // The others.

  private GroupSplit.Part follow(int leader) {
    long since = time.look();
    int known = NONE;
    long proposed = NONE;
    while (true) {
      if (known != gone.cardinality()) {
        known = gone.cardinality();
        send(leader, JOIN, NONE, 0, job.contexts().generation(), 0);
      }
      requireWanted();
      ByteBuffer letter = read(leader);
      if (letter != null && letter.getInt(TYPE) == PROPOSE) {
        proposed = letter.getLong(BALLOT);
        addGone(letter);
        known = gone.cardinality(); // the leader knows
        release();
        boolean free = reserve(letter.getInt(CONTEXT));
        send(leader, free ? AGREE : REFUSE, NONE, proposed, 0, 0);
      } else if (letter != null
          && letter.getInt(TYPE) == COMMIT
          && letter.getLong(BALLOT) == proposed
          && reserved == letter.getInt(CONTEXT)) {
        job.contexts().advanceTo(letter.getLong(GENERATION));
        gone.clear();
        addGone(letter); // as all others that commit
        return part(
            members(), letter.getInt(CONTEXT), letter.getLong(GENERATION), letter.getLong(ID));
      }
      look();
      if (time.look() - since > LEADERS_WAITS * timeouts.timeoutNanos()) {
        gone.set(leader);
      }
      if (gone.get(leader)) {
        release();
        return null;
      }
      pause();
    }
  }

  // Both.

  private GroupSplit.Part part(BitSet members, int context, long generation, long id) {
    int[] peers = members.stream().toArray();
    int own = 0;
    while (peers[own] != rank()) {
      own++;
    }
    return new GroupSplit.Part(context, generation, id, peers, own);
  }

  private boolean reserve(int context) {
    boolean free = job.contexts().tryReserve(context);
    reserved = free ? context : NONE;
    return free;
  }

  private void release() {
    if (reserved != NONE) {
      job.contexts().release(reserved);
      reserved = NONE;
    }
  }

  private static boolean isGone(ByteBuffer letter, int peer) {
    return (letter.getLong(GONE + peer / Long.SIZE * Long.BYTES) >>> peer & 1) != 0;
  }

  private void addGone(ByteBuffer letter) {
    for (int peer = 0; peer < messages.size(); peer++) {
      if (peer != rank() && isGone(letter, peer)) {
        gone.set(peer);
      }
    }
  }

  private static BitSet used(ByteBuffer letter) {
    ByteBuffer bits = letter.slice(USED, ContextIds.LIMIT / Byte.SIZE);
    return BitSet.valueOf(bits.order(ByteOrder.nativeOrder()).asLongBuffer());
  }

  /** The next message of a rank, or null. A rank whose messages are broken is lost. */
  private ByteBuffer read(int peer) {
    ByteBuffer next = peek(peer);
    if (next != null) {
      letters.get(peer).next = null;
    }
    return next;
  }

  private ByteBuffer peek(int peer) {
    try {
      Letter letter = letters.computeIfAbsent(peer, Letter::new);
      if (letter.next == null && letter.message.test()) {
        letter.next = HostBuffers.allocate(bytes);
        letter.next.put(0, letter.memory, 0, bytes);
        letter.message.start();
      }
      return letter.next;
    } catch (RankLostException e) {
      gone.set(peer);
      return null;
    }
  }

  private void send(int peer, int type, int context, long number, long generation, long id) {
    ByteBuffer memory = HostBuffers.allocate(bytes); // its own: it may be sent later
    memory.putInt(TYPE, type).putInt(CONTEXT, context).putLong(BALLOT, number);
    memory.putLong(GENERATION, generation).putLong(ID, id);
    long[] used = job.contexts().used();
    for (int i = 0; i < used.length; i++) {
      memory.putLong(USED + i * Long.BYTES, used[i]);
    }
    long[] missing = gone.toLongArray();
    for (int i = 0; i < missing.length; i++) {
      memory.putLong(GONE + i * Long.BYTES, missing[i]);
    }
    try {
      Message message = messages.sender(memory, peer, Channel.SURVIVORS);
      message.start();
      Resources.closeAll(message);
    } catch (RankLostException e) {
      gone.set(peer);
    }
  }

  private void pause() {
    if (Thread.currentThread().isInterrupted()) {
      throw new RankLostException(
          "interrupted while the ranks agree on how to go on, rank=" + rank());
    }
    LockSupport.parkNanos(PARK_NANOS);
  }
}

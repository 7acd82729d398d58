package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Mailbox;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.spi.Timeouts;

/**
 * How the ranks of a group that is broken agree on those that are left. Shared with all groups of
 * survivors that come after it, so that ranks agree although some of them have seen one loss more
 * than others. Ranks have the numbers of the first group.
 *
 * <p>The lowest rank that is left leads. All others join it and say whom they miss. It proposes the
 * members and a tag range, all of them reserve the range and agree, and it commits. If the leader
 * is lost, the next one leads. A rank that has committed with a leader that is lost afterwards
 * cannot finish a call in the new group, as the others do not join it, and so comes back here.
 *
 * <p>Two-phase commit with a new leader after a loss: D. Skeen, "Nonblocking commit protocols",
 * SIGMOD 1981. It needs that a rank which is taken for lost is: transports know the processes that
 * have died. Those that may live, because they do not come in time or a network is divided, are
 * given up only by at least half of all that may live; of two halves by that with the lowest rank.
 * Two parts may still go on if the network is whole again before they have given up connections.
 */
final class Survivors {
  private static final int HEADER = 4 * Long.BYTES; // of a message, before the ranks that are gone

  private static final int JOIN = 1;
  private static final int PROPOSE = 2;
  private static final int AGREE = 3;
  private static final int REFUSE = 4; // the tag range is not free here
  private static final int COMMIT = 5;

  private static final long PARK_NANOS = 100_000;
  private static final int LEADERS_WAITS = 3; // a leader waits for others up to two times
  private static final long SILENT_NANOS = 1_000_000_000;
  private static final int NONE = -1;

  private final GroupTransport messages;
  private final RankMap ranks;
  private final int rank;
  private final Job job;
  private final BitSet gone = new BitSet();
  private final BitSet silent = new BitSet(); // of these, those waited for in vain
  private final int setBytes;
  private final Mailbox mailbox;
  private final Map<Integer, Deque<Received>> received = new HashMap<>(); // by sender
  private long ballot; // of this rank's last proposal
  private int reserved = NONE; // tag range

  // Of the current agreement.
  private GroupParts group; // of those that were left until now
  private GroupState state;
  private Timeouts timeouts;
  private WaitClock time;

  /** What a rank tells another one, with the ranks that it misses. */
  private record Received(
      int type, int context, long ballot, long id, BitSet gone, BitSet silent) {}

  Survivors(GroupTransport messages, Job job) {
    this.messages = messages;
    ranks = messages.ranks();
    rank = messages.rank();
    this.job = job;
    setBytes = (messages.size() + Byte.SIZE - 1) / Byte.SIZE;
    mailbox = new Mailbox(messages, Channel.SURVIVORS, HEADER + 2 * setBytes);
  }

  /** The world ranks that are not left, after the agreement. */
  List<Integer> lost() {
    return gone.stream().map(ranks::worldRank).boxed().toList();
  }

  /** Those of them that have not come, and have neither ended nor left, if this is all the job. */
  List<Integer> silent() {
    return lost().stream().filter(peer -> messages.key().isWorld() && silent.get(peer)).toList();
  }

  /** Agrees on the ranks that are left of a group. See {@link ProcessGroup#survivors}. */
  GroupTransport agree(GroupParts newGroup, GroupState newState, Timeouts newTimeouts) {
    group = newGroup;
    state = newState;
    timeouts = newTimeouts;
    time = new WaitClock();
    try {
      while (true) {
        look();
        requireWanted();
        int leader = gone.nextClearBit(0);
        GroupTransport part = leader == rank ? lead() : follow(leader);
        if (part != null) {
          reserved = NONE; // it is the group's now
          return part;
        }
      }
    } finally {
      release();
    }
  }

  /** Whether a rank has died, or has left. Throws if this process is ending. */
  private boolean isLost(int peer) {
    state.requireNotEnding();
    int number = group.ranks().find(ranks.worldRank(peer));
    return number == RankMap.NO_RANK
        || group.liveness().isUnreachable(number)
        || job.liveness.hasLeft(ranks.worldRank(peer));
  }

  /** Whether a rank that the group still had has neither ended nor left, as far as is known. */
  private boolean mayLive(int peer) {
    int number = group.ranks().find(ranks.worldRank(peer));
    return number != RankMap.NO_RANK
        && group.liveness().mayLive(number)
        && !job.liveness.hasLeft(ranks.worldRank(peer));
  }

  private void look() {
    members().stream().filter(peer -> peer != rank && isLost(peer)).forEach(gone::set);
  }

  /** Throws if ranks have agreed to go on without this one, also if they have ended since. */
  private void requireNotLeftBehind() {
    receive();
    if (received.values().stream()
        .flatMap(Deque::stream)
        .anyMatch(message -> message.type == COMMIT && message.gone.get(rank))) {
      throw notWanted();
    }
  }

  /** As above, and if a lower rank, which would lead, takes this one for lost. */
  private void requireWanted() {
    requireNotLeftBehind();
    for (int peer = 0; peer < rank; peer++) {
      Received next = receivedFrom(peer).peek();
      if (next != null && next.gone.get(rank)) {
        throw notWanted();
      }
    }
  }

  private RankLostException notWanted() {
    return new RankLostException(
        "the other ranks go on without this one, which did not come in time, or which some of them could not reach: rank="
            + rank);
  }

  private GroupTransport lead() {
    BitSet joined = new BitSet();
    int context = NONE;
    while (true) {
      collect(JOIN, NONE, joined);
      release();
      context = job.reserveFrom(context + 1);
      if (context >= Job.MAX_GROUPS) {
        throw new RankLostException(
            "cannot go on: all %s tag ranges are in use, rank=%s; close communicators and syncs that are not needed"
                .formatted(Job.MAX_GROUPS, rank));
      }
      reserved = context;
      long id = ThreadLocalRandom.current().nextLong();
      ballot++;
      BitSet members = members();
      requireMost(members);
      tell(members.stream(), PROPOSE, context, id);
      if (!collect(AGREE, ballot, new BitSet()) || !members.equals(members())) {
        continue;
      }
      tell(members.stream(), COMMIT, context, id);
      // And those that are gone, now or if they come later.
      tell(gone.stream().filter(peer -> !isLost(peer)), COMMIT, context, id);
      return part(context, id);
    }
  }

  private BitSet members() {
    BitSet members = new BitSet();
    members.set(0, messages.size());
    members.andNot(gone);
    return members;
  }

  private void tell(IntStream peers, int type, int context, long id) {
    peers.filter(peer -> peer != rank).forEach(p -> send(p, type, context, ballot, id));
  }

  /**
   * Waits until all other members have sent a message of one type, and adds them to those that have
   * answered. Returns false if a rank refuses the tag range, or one was lost.
   */
  private boolean collect(int type, long number, BitSet answered) {
    int before = gone.cardinality();
    long since = time.look();
    answered.set(rank);
    while (true) {
      look();
      requireNotLeftBehind();
      BitSet missing = members();
      missing.andNot(answered);
      if (type == AGREE && gone.cardinality() > before) {
        return false;
      }
      if (missing.isEmpty()) {
        return true;
      }
      for (int peer = missing.nextSetBit(0); peer >= 0; peer = missing.nextSetBit(peer + 1)) {
        if (gone.get(peer)) {
          continue; // another rank has just said so: it does not say who else is
        }
        Received message = receivedFrom(peer).poll();
        if (message != null) {
          addGone(message);
          if (message.type == type && (type == JOIN || message.ballot == number)) {
            answered.set(peer);
          } else if (message.type == REFUSE && message.ballot == number) {
            return false;
          }
        }
      }
      if (time.look() - since > timeouts.timeoutNanos()) {
        gone.or(missing);
        silent.or(missing);
      }
      pause();
    }
  }

  /** Throws if those that are taken for lost, and may live, may go on themselves. */
  private void requireMost(BitSet members) {
    List<Integer> silent = gone.stream().filter(this::mayLive).boxed().toList();
    int more = members.cardinality() - silent.size();
    if (more < 0 || more == 0 && silent.get(0) < members.nextSetBit(0)) {
      String came = ranks.names(members.stream().boxed().toList());
      throw new RankLostException(
          "%s did not come to go on together, and may do so without this rank: came=%s, rank=%s, waited=%s; of a divided network the part with more than half of the ranks goes on, of two halves that with the lowest rank"
              .formatted(ranks.names(silent), came, rank, Amounts.time(time.look())));
    }
  }

  private GroupTransport follow(int leader) {
    long since = time.look();
    int known = NONE;
    int asked = leader; // the last rank that this one has tried to reach
    long proposed = NONE;
    while (true) {
      look(); // before what they sent: a leader may leave when it has committed
      requireWanted();
      Received message = receivedFrom(leader).poll();
      if (message != null && message.type == PROPOSE) {
        proposed = message.ballot;
        addGone(message);
        known = gone.cardinality(); // the leader knows
        release();
        reserved = job.tryReserve(message.context) ? message.context : NONE;
        send(leader, reserved == NONE ? REFUSE : AGREE, NONE, proposed, 0);
      } else if (message != null
          && message.type == COMMIT
          && message.ballot == proposed
          && message.context == reserved) {
        gone.clear();
        addGone(message); // as all others that commit
        return part(message.context, message.id);
      }
      if (time.look() - since > LEADERS_WAITS * timeouts.timeoutNanos()) {
        gone.set(leader);
        silent.set(leader);
      }
      if (gone.get(leader)) {
        release();
        return null;
      }
      if (known != gone.cardinality()) {
        known = gone.cardinality();
        send(leader, JOIN, NONE, 0, 0);
      }
      // If the leader's node is silent, this finds its ranks together, not one after the other.
      boolean mayBeSilent = time.look() - since > (asked - leader + 1) * SILENT_NANOS;
      if (mayBeSilent && asked + 1 < rank && ranks.nodeOf(asked + 1) == ranks.nodeOf(leader)) {
        asked++;
        if (!gone.get(asked)) {
          send(asked, JOIN, NONE, 0, 0);
        }
      }
      pause();
    }
  }

  private GroupTransport part(int context, long id) {
    return messages.part(new GroupKey(context, id), members().stream().toArray());
  }

  private void release() {
    if (reserved != NONE) {
      job.release(reserved);
      reserved = NONE;
    }
  }

  private void addGone(Received message) {
    message.gone.stream().filter(peer -> peer != rank).forEach(gone::set);
    silent.or(message.silent);
  }

  private void receive() {
    for (ByteBuffer next = mailbox.next(); next != null; next = mailbox.next()) {
      ByteBuffer in = next.duplicate().order(next.order());
      Deque<Received> ofSender = receivedFrom(in.getInt());
      int type = in.getInt();
      int context = (int) in.getLong();
      long number = in.getLong();
      long id = in.getLong();
      ofSender.add(new Received(type, context, number, id, set(in), set(in)));
    }
  }

  private BitSet set(ByteBuffer in) {
    byte[] bytes = new byte[setBytes];
    in.get(bytes);
    return BitSet.valueOf(bytes);
  }

  private Deque<Received> receivedFrom(int peer) {
    return received.computeIfAbsent(peer, sender -> new ArrayDeque<>());
  }

  /** A rank whose messages are broken is lost. */
  private void send(int peer, int type, int context, long number, long id) {
    ByteBuffer out = HostBuffers.allocate(HEADER + 2 * setBytes);
    out.putInt(rank).putInt(type).putLong(context).putLong(number).putLong(id);
    out.put(gone.toByteArray()).position(HEADER + setBytes);
    out.put(silent.toByteArray()).clear();
    try {
      mailbox.send(out, peer);
    } catch (RankLostException e) {
      gone.set(peer);
    }
  }

  private void pause() {
    if (Thread.currentThread().isInterrupted()) {
      throw new RankLostException(
          "interrupted while the ranks agree on how to go on, rank=" + rank);
    }
    LockSupport.parkNanos(PARK_NANOS);
  }
}

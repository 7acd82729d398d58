package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.host.HostBuffers;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The ranks that take part in one communicator, and what all their calls have in common: a tag
 * range of their own, meeting before data moves, waiting with a deadline, and saying goodbye.
 *
 * <p>Every collective begins with {@link #meet}, in which each rank tells every other what it asks
 * for. So calls that differ are found before any buffer is touched, and a rank that is missing is
 * known by its number.
 *
 * <p>Its lock orders the calls of several threads; everything here is called with it held, or says
 * so.
 */
public final class Group implements AutoCloseable {
  /**
   * Channels below this are the library's; a user's tag t is USER_CHANNEL + 2t and the one after
   * it.
   */
  static final int USER_CHANNEL = 16;

  private static final long NOWHERE = -1;
  private static final int WORDS = 3 + Contexts.LIMIT / Long.SIZE; // of a proposal in split
  private static final int CALLS = 0;
  private static final int GOODBYE = 1;

  /** For the data of collectives. */
  static final int DATA = 2;

  /** For the first half of an all-reduce. */
  static final int SCATTER = 3;

  /** For the second half of an all-reduce. */
  static final int GATHER = 4;

  private static final int CHANNEL_BITS = 13;
  private static final Duration FOREVER =
      Duration.ofDays(36500); // what a long of nanoseconds can hold
  private static final Duration LATE = Duration.ofSeconds(10);
  private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();
  private static final Logger log = LoggerFactory.getLogger(Group.class);

  private final Transport transport;
  private final Contexts contexts;
  private final int context;
  private final long generation;
  private final int[] members;
  private final int rank;
  private Duration timeout;

  private final ByteBuffer current = HostBuffers.allocate(Call.BYTES);
  private final MessageMeeting messages;
  private final ByteBuffer[] goodbyes;
  private final Message[] goodbyeReceives;
  private Meeting meeting;
  private long sequence;
  private long before; // calls that the library made itself, which no user wants to count
  private volatile GradientSyncException broken;
  private boolean closed;

  private Group(
      Transport transport,
      Contexts contexts,
      int context,
      long generation,
      int[] members,
      int rank,
      Duration timeout) {
    this.transport = transport;
    this.contexts = contexts;
    this.context = context;
    this.generation = generation;
    this.members = members;
    this.rank = rank;
    this.timeout = timeout;
    int size = members.length;
    messages = new MessageMeeting(this, CALLS);
    meeting = messages;
    goodbyes = new ByteBuffer[size];
    goodbyeReceives = new Message[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        goodbyes[peer] = HostBuffers.allocate(Long.BYTES);
        goodbyeReceives[peer] = receiver(goodbyes[peer], peer, GOODBYE);
        goodbyeReceives[peer].start();
      }
    }
    contexts.opened(this, context);
  }

  /**
   * All ranks of a job, from which the groups of syncs and communicators are {@linkplain #split
   * split}. Does not communicate.
   *
   * @param transport the way to the other ranks, which this group closes
   * @return the group; one for the life of the transport
   */
  public static Group world(Transport transport) {
    int[] members = new int[transport.size()];
    for (int i = 0; i < members.length; i++) {
      members[i] = i;
    }
    return new Group(
        transport, new Contexts(), 0, 0, members, transport.rank(), Settings.DEFAULT_TIMEOUT);
  }

  /**
   * This rank's number in the group.
   *
   * @return from 0 to size - 1
   */
  public int rank() {
    return rank;
  }

  /**
   * The number of ranks in the group.
   *
   * @return 1 or more
   */
  public int size() {
    return members.length;
  }

  /**
   * The way to the other ranks.
   *
   * @return the transport of the whole job
   */
  public Transport transport() {
    return transport;
  }

  /**
   * How long a call waits for another rank.
   *
   * @return more than zero
   */
  public Duration timeout() {
    return timeout;
  }

  /**
   * The node that a rank runs on.
   *
   * @param peer a rank of the group
   * @return see {@link Transport#nodeOf}
   */
  public int nodeOf(int peer) {
    return transport.nodeOf(members[peer]);
  }

  /**
   * Divides the group. Collective. The rules are those of {@link
   * org.gradientsync.Communicator#split}.
   *
   * @param color which new group this rank joins; none if negative
   * @param key orders the ranks in it
   * @param newTimeout how long the new group's calls wait for another rank
   * @return the new group, or null
   */
  public synchronized Group split(int color, int key, Duration newTimeout) {
    Objects.requireNonNull(newTimeout, "timeout");
    if (context == 0) {
      timeout = newTimeout; // the world has none of its own
    }
    // Another thread may be splitting another group of the same ranks, and the ranks may run the
    // two in
    // different orders. So a tag range is proposed, taken by each rank if it is still free there,
    // and given
    // back by all if it was not free on all.
    while (true) {
      long[] all = proposals(color, key);
      int context = lowestFree(all);
      boolean taken = contexts.tryTake(context);
      long[] outcomes = allGather(new long[] {taken ? 1 : 0});
      if (Arrays.stream(outcomes).min().getAsLong() == 1) {
        if (color >= 0) {
          return part(all, color, context, newTimeout);
        }
        contexts.giveBack(context);
        return null;
      }
      if (taken) {
        contexts.giveBack(context);
      }
      LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(2_000_000));
    }
  }

  /** Of each rank: color, key, its newest generation, and a bit for each tag range in use there. */
  private long[] proposals(int color, int key) {
    long[] own = new long[WORDS];
    own[0] = color;
    own[1] = key;
    own[2] = contexts.generation();
    System.arraycopy(contexts.used(), 0, own, 3, WORDS - 3);
    meet(Call.Kind.SPLIT, Call.element((DataType) null), 0, null, Call.NO_ROOT);
    return allGather(own);
  }

  private long[] allGather(long[] own) {
    long[] all = new long[own.length * size()];
    new Exchange(this).allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    return all;
  }

  private int lowestFree(long[] all) {
    long[] used = new long[WORDS - 3];
    for (int i = 0; i < all.length; i++) {
      if (i % WORDS >= 3) {
        used[i % WORDS - 3] |= all[i];
      }
    }
    int free = BitSet.valueOf(used).nextClearBit(0);
    if (free >= Contexts.LIMIT) {
      throw new GradientSyncException(
          "too many communicators are open: rank="
              + rank
              + ", limit="
              + Contexts.LIMIT
              + "; close some");
    }
    return free;
  }

  private Group part(long[] all, int color, int newContext, Duration newTimeout) {
    long newGeneration = 0;
    List<long[]> joining = new ArrayList<>();
    for (int peer = 0; peer < size(); peer++) {
      newGeneration = Math.max(newGeneration, all[peer * WORDS + 2] + 1);
      if (all[peer * WORDS] == color) {
        joining.add(new long[] {all[peer * WORDS + 1], peer});
      }
    }
    contexts.advanceTo(newGeneration);
    joining.sort((a, b) -> a[0] != b[0] ? Long.compare(a[0], b[0]) : Long.compare(a[1], b[1]));
    int[] newMembers = new int[joining.size()];
    int newRank = -1;
    for (int i = 0; i < newMembers.length; i++) {
      int peer = (int) joining.get(i)[1];
      newMembers[i] = members[peer];
      if (peer == rank) {
        newRank = i;
      }
    }
    return new Group(
        transport, contexts, newContext, newGeneration, newMembers, newRank, newTimeout);
  }

  /**
   * Prepares sending to a rank of the group.
   *
   * @param memory see {@link Transport#sender}
   * @param peer a rank of the group
   * @param channel from 0 to 2^13 - 1
   * @return the message
   */
  Message sender(ByteBuffer memory, int peer, int channel) {
    return transport.sender(memory, members[peer], context << CHANNEL_BITS | channel);
  }

  /**
   * Prepares receiving from a rank of the group.
   *
   * @param memory see {@link Transport#receiver}
   * @param peer a rank of the group
   * @param channel from 0 to 2^13 - 1
   * @return the message
   */
  Message receiver(ByteBuffer memory, int peer, int channel) {
    return transport.receiver(memory, members[peer], context << CHANNEL_BITS | channel);
  }

  /**
   * Meets all other ranks and compares what they ask for. Returns when all have come and ask for
   * the same.
   *
   * @throws MismatchedCallException on every rank if they do not
   * @throws RankLostException if a rank does not come
   */
  void meet(Call.Kind kind, int element, long count, ReduceOp op, int root) {
    meet(kind, element, count, op, root, NOWHERE, 0);
  }

  /**
   * {@link #meet(Call.Kind, int, long, ReduceOp, int)}, telling the others where the buffer lies.
   */
  void meet(
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      long memoryId,
      long memoryOffset) {
    requireUsable();
    sequence++;
    Call.write(current, sequence - before, kind, element, count, op, root);
    ByteBuffer own = meeting.own(sequence);
    Call.write(own, sequence - before, kind, element, count, op, root);
    Call.writePlace(own, memoryId, memoryOffset);
    meeting.come(sequence);
    boolean same = true;
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        await(meeting.arrival(peer), peer);
        same &= Call.same(own, meeting.call(peer));
      }
    }
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        await(meeting.told(peer), peer);
      }
    }
    if (!same) {
      throw new MismatchedCallException(table());
    }
  }

  /**
   * Meets for an all-reduce, before any data is touched. The caller holds this group's lock.
   *
   * @param buffer what is to be reduced
   * @param op the reduction
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  public void meetForAllReduce(DeviceBuffer buffer, ReduceOp op) {
    meet(Call.Kind.ALL_REDUCE, Call.element(buffer.type()), buffer.count(), op, Call.NO_ROOT);
  }

  /**
   * Meets for a broadcast, before any data is touched. The caller holds this group's lock.
   *
   * @param buffer what is to be sent
   * @param root the rank that has the data
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  public void meetForBroadcast(DeviceBuffer buffer, int root) {
    meet(Call.Kind.BROADCAST, Call.element(buffer.type()), buffer.count(), null, root);
  }

  /**
   * Meets for a registration. The caller holds this group's lock.
   *
   * @param buffer what is to be registered
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  public void meetForRegistration(DeviceBuffer buffer) {
    meet(Call.Kind.REGISTER, Call.element(buffer.type()), buffer.count(), null, Call.NO_ROOT);
  }

  /** Counts calls from here on, for messages; every rank does so after the same call. */
  public synchronized void countFromHere() {
    before = sequence;
  }

  /** Meets in another way from the next call on; every rank does so after the same call. */
  void meetOn(Meeting newMeeting) {
    meeting = newMeeting;
  }

  /** Notes what this rank is doing with one other, for the messages of exceptions. */
  void beginPair(Call.Kind kind, int element, long count, int tag) {
    requireUsable();
    Call.write(current, sequence - before, kind, element, count, null, tag);
  }

  /**
   * Waits for a message, or for anything else that tells of another rank's progress. The caller
   * holds this group's lock.
   *
   * @param message a started message
   * @param peer the rank of the group at its other end
   * @throws RankLostException if that rank does not do its part in time
   */
  public void await(Message message, int peer) {
    // A short wait is the rule and must cost nothing; the clock is looked at when it gets long.
    for (int spin = 0; spin < 2000; spin++) {
      if (test(message, peer)) {
        return;
      }
      Thread.onSpinWait();
    }
    awaitLong(message, peer);
  }

  private void awaitLong(Message message, int peer) {
    long start = System.nanoTime();
    boolean warned = false;
    long left = 0;
    while (true) {
      for (int spin = 0; spin < 20; spin++) {
        if (test(message, peer)) {
          return;
        }
        Thread.yield();
      }
      long now = System.nanoTime();
      long waited = now - start;
      if (Thread.currentThread().isInterrupted()) {
        throw fail(
            new RankLostException(
                "interrupted while waiting: rank="
                    + rank
                    + ", waitingFor="
                    + peer
                    + ", "
                    + during()));
      }
      if (meeting.abandoned(peer)) {
        throw lost("rank " + peer + " gave up in the middle of a call", null);
      }
      if (left == 0 && goodbye(peer)) {
        left = now;
      } else if (left != 0 && now - left > GRACE_NANOS && !test(message, peer)) {
        throw fail(
            new RankLostException(
                "rank "
                    + peer
                    + " has left: it closed its side or ended, rank="
                    + rank
                    + ", "
                    + during()));
      }
      if (waited > timeoutNanos() && !test(message, peer)) {
        throw fail(
            new RankLostException(
                "timed out: "
                    + missing(peer)
                    + " did not join in time, rank="
                    + rank
                    + ", waited="
                    + timeout
                    + ", "
                    + during()));
      }
      if (!warned && waited > LATE.toNanos()) {
        warned = true;
        log.warn(
            "rank {} has waited {} s for {}: {}", rank, LATE.toSeconds(), missing(peer), during());
      }
      if (waited > 50_000_000) {
        LockSupport.parkNanos(100_000);
      }
    }
  }

  private long timeoutNanos() {
    return timeout.compareTo(FOREVER) > 0 ? FOREVER.toNanos() : timeout.toNanos();
  }

  private boolean test(Message message, int peer) {
    try {
      return message.test();
    } catch (RankLostException e) {
      throw lost("rank " + peer + " is lost: " + e.getMessage(), e.getCause());
    } catch (GradientSyncException e) {
      throw lost(e.getMessage(), e);
    }
  }

  private String missing(int waitedFor) {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank && !meeting.arrival(peer).test()) {
        missing.add(peer);
      }
    }
    return missing.size() > 1 ? "ranks " + missing : "rank " + waitedFor;
  }

  /** What this rank is doing, for the end of an error message. */
  private String during() {
    return "in="
        + Call.describe(current)
        + " of communicator "
        + context
        + " with "
        + size()
        + " ranks";
  }

  private String table() {
    StringBuilder text = new StringBuilder("the ranks' calls do not match, rank=" + rank + ":");
    for (int peer = 0; peer < members.length; peer++) {
      text.append("\n  rank ").append(peer).append(": ").append(Call.describe(meeting.call(peer)));
    }
    return text.toString();
  }

  /** Whether a rank has said that it has left this very communicator. */
  private boolean goodbye(int peer) {
    if (!goodbyeReceives[peer].test()) {
      return false;
    }
    if (goodbyes[peer].getLong(0) == generation) {
      return true;
    }
    goodbyeReceives[peer].start(); // from an earlier owner of these tags
    return false;
  }

  /**
   * Breaks the group, for what goes wrong after the ranks have met: the others cannot go on either.
   *
   * @param message what happened; this rank and its call are added
   * @param cause what the layer below said, or null
   * @return the exception to throw
   */
  public RankLostException lost(String message, Throwable cause) {
    return fail(new RankLostException(message + ", rank=" + rank + ", " + during(), cause));
  }

  /** Marks the group as broken: messages may be under way that nobody will receive. */
  private <E extends GradientSyncException> E fail(E cause) {
    if (broken == null) {
      broken = cause;
      meeting.abandon();
    }
    return cause;
  }

  /**
   * Refuses a closed or broken group. Takes the lock itself.
   *
   * @throws IllegalStateException if it is closed
   * @throws RankLostException if an earlier call lost a rank
   */
  public synchronized void requireUsable() {
    if (closed) {
      throw new IllegalStateException("communicator is closed: rank=" + rank);
    }
    if (broken != null) {
      throw new RankLostException(
          "communicator is broken by an earlier failure, rank=" + rank + ": " + broken.getMessage(),
          broken);
    }
  }

  /**
   * Whether an earlier call lost a rank. Takes the lock itself.
   *
   * @return true if every further call will throw
   */
  public synchronized boolean isBroken() {
    return broken != null;
  }

  /**
   * Refuses what is not a rank.
   *
   * @param peer the number given
   * @param role what it was given as
   * @throws IllegalArgumentException if there is no such rank
   */
  void requireRank(int peer, String role) {
    if (peer < 0 || peer >= members.length) {
      throw new IllegalArgumentException(
          "no such rank: " + role + "=" + peer + ", size=" + members.length + ", rank=" + rank);
    }
  }

  /**
   * Leaves: tells the others, and waits for nobody. Takes the lock itself. A second call does
   * nothing.
   */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      sayGoodbye();
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot say goodbye", rank, e); // MPI is over already
    }
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        goodbyeReceives[peer].close();
      }
    }
    messages.close();
    contexts.closed(this, context, broken == null);
    if (context == 0) {
      transport.close();
    }
  }

  /**
   * Tells the other ranks that this one leaves, in every group of the job that is still open. Takes
   * no lock and waits for nobody: for the end of the process.
   *
   * @return false if a group is or was broken, so that not all ranks may come to the end of the job
   */
  public boolean leaveAll() {
    boolean sound = !contexts.everBroken();
    for (Group group : contexts.open()) {
      sound &= group.broken == null;
      group.sayGoodbye();
    }
    return sound;
  }

  private void sayGoodbye() {
    ByteBuffer goodbye = HostBuffers.allocate(Long.BYTES);
    goodbye.putLong(0, generation);
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        Message message = sender(goodbye, peer, GOODBYE);
        message.start();
        message.close();
      }
    }
  }
}

package org.gradientsync.collective;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Patience;
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

  /** Instead of a memory's id, for what no other rank can map. */
  static final long NOWHERE = -1;

  /** Instead of a memory's id, for elements that have come with the call. */
  static final long BEHIND_THE_CALL = -2;

  private static final int CALLS = 0;
  private static final int GOODBYE = 1;

  /** Instead of a rank, where none is meant. */
  public static final int NO_RANK = Call.NO_ROOT;

  /** For the data of collectives. */
  static final int DATA = 2;

  /** For the first half of an all-reduce. */
  static final int SCATTER = 3;

  /** For the second half of an all-reduce. */
  static final int GATHER = 4;

  private static final int QUESTION = 5;
  private static final int ANSWER = 6;

  /** Of the world: the ranks' probes for those that wait for each other. */
  static final int PROBE = 7;

  /** For calls that bring elements. */
  static final int CARGO = 8;

  private static final int CHANNEL_BITS = 13;
  private static final long QUIET_NANOS = 500_000_000;
  private static final long LOOK_NANOS = 1_000_000_000;
  private static final byte[] NO_NAME = new byte[AbstractDeviceBuffer.NAME_BYTES];
  private static final Logger log = LoggerFactory.getLogger(Group.class);

  private final Transport transport;
  private final Contexts contexts;
  private final int context;
  private final StandOff.Key key;
  private final int[] members;
  private final int rank;
  private Patience patience;

  private final CallLog calls = new CallLog();
  private final Pairs pairs;
  private final MessageMeeting messages;
  private final Goodbyes goodbyes;
  private final Wait wait;
  private final Reports reports; // or null
  private final List<Supplier<List<String>>> states = new CopyOnWriteArrayList<>();
  private WeakReference<Thread> caller = new WeakReference<>(null);
  private long lookedAt = System.nanoTime(); // for messages, by the thread that does
  private Meeting meeting;
  private MessageMeeting carrier; // or null
  private long enqueued; // calls that did not meet on the host; negative if they cannot be counted
  private long notFinite = -1;
  private boolean pair; // the last call was one with single other ranks
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
      Patience patience,
      long id) {
    this.transport = transport;
    this.contexts = contexts;
    this.context = context;
    this.key = new StandOff.Key(context, id);
    this.members = members;
    this.rank = rank;
    this.patience = patience;
    int size = members.length;
    pairs = new Pairs(size);
    messages = new MessageMeeting(this, CALLS, 0);
    meeting = messages;
    goodbyes = new Goodbyes(this, GOODBYE, generation);
    wait = new Wait(this, goodbyes);
    Path folder = patience.reports().orElse(null);
    reports =
        size == 1 || folder == null
            ? null
            : new Reports(new ReportFolder(folder, id, rank), inquiry(generation), this);
    contexts.opened(this, context);
    if (reports != null && context != 0) {
      Watch.add(this, reports.asksByMessages());
    }
  }

  /** For other nodes; null where there are none, or where the watch cannot look for messages. */
  private Inquiry inquiry(long generation) {
    boolean oneNode = ranksOf(nodeOf(rank)).size() == size();
    return oneNode || !transport.takesOtherThreads()
        ? null
        : new Inquiry(this, QUESTION, ANSWER, generation);
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
    Patience none = new Patience(Settings.DEFAULT_TIMEOUT, Settings.DEFAULT_LATE, Optional.empty());
    return new Group(transport, new Contexts(transport), 0, 0, members, transport.rank(), none, 0);
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
    return patience.timeout();
  }

  /**
   * How long a call waits, and what it does meanwhile.
   *
   * @return what this group was made with
   */
  public Patience patience() {
    return patience;
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
  public Group split(int color, int key, Duration newTimeout) {
    return split(color, key, new Patience(newTimeout, patience.late(), patience.reports()));
  }

  /**
   * Divides the group. Collective. The rules are those of {@link
   * org.gradientsync.Communicator#split}.
   *
   * @param color which new group this rank joins; none if negative
   * @param key orders the ranks in it
   * @param newPatience how long the new group's calls wait for another rank
   * @return the new group, or null
   */
  public synchronized Group split(int color, int key, Patience newPatience) {
    Objects.requireNonNull(newPatience, "patience");
    if (context == 0) {
      patience = newPatience; // the world has none of its own
    }
    Division.Part part = new Division(this, contexts).agree(color, key);
    if (part == null) {
      return null;
    }
    int[] newMembers = Arrays.stream(part.peers()).map(peer -> members[peer]).toArray();
    return new Group(
        transport,
        contexts,
        part.context(),
        part.generation(),
        newMembers,
        part.rank(),
        newPatience,
        part.id());
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
    meet(kind, element, count, op, root, NOWHERE, 0, NO_NAME, null);
  }

  /** As above, for a call about a buffer. */
  void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, int root) {
    meet(kind, buffer, op, root, NOWHERE, 0);
  }

  /**
   * As above, for an all-reduce.
   *
   * @param cargo this rank's contributions, to be sent at the same time, or null
   */
  void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, Cargo cargo) {
    byte[] name = ((AbstractDeviceBuffer) buffer).nameBytes();
    int element = Call.element(buffer.type());
    long where = cargo == null ? NOWHERE : BEHIND_THE_CALL;
    meet(kind, element, buffer.count(), op, Call.NO_ROOT, where, 0, name, cargo);
  }

  /** How many bytes a {@link Cargo} may have for each rank; the same on all ranks. */
  int cargoBytes() {
    return meeting.cargoBytes();
  }

  /** Whether a rank has sent its contribution with the call in which the ranks have met. */
  boolean hasBrought(int peer) {
    return Call.memoryId(meeting.call(peer)) == BEHIND_THE_CALL;
  }

  /** Where such a contribution lies, from call to call. */
  ByteBuffer broughtBy(int peer, int bytes) {
    return meeting.call(peer).slice(Call.BYTES, bytes).order(ByteOrder.nativeOrder());
  }

  /** As above, telling the others where the buffer lies. */
  void meet(
      Call.Kind kind,
      DeviceBuffer buffer,
      ReduceOp op,
      int root,
      long memoryId,
      long memoryOffset) {
    byte[] name = ((AbstractDeviceBuffer) buffer).nameBytes();
    int element = Call.element(buffer.type());
    meet(kind, element, buffer.count(), op, root, memoryId, memoryOffset, name, null);
  }

  private void meet(
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      long memoryId,
      long memoryOffset,
      byte[] name,
      Cargo cargo) {
    requireUsable();
    pair = false;
    sequence++;
    long found = notFinite;
    notFinite = -1;
    begin(sequence - before, kind, element, count, op, root, name);
    ByteBuffer own = meeting.own(sequence);
    Call.write(own, sequence - before, kind, element, count, op, root);
    Call.writePlace(own, memoryId, memoryOffset);
    Call.writeOwn(own, enqueued, found, name);
    meeting.load(cargo);
    meeting.come(sequence);
    boolean same = true;
    boolean finite = found < 0;
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        wait.await(meeting.arrival(peer), peer, Stance.Phase.MEETING, sequence);
        same &= Call.same(own, meeting.call(peer));
        finite &= Call.notFinite(meeting.call(peer)) < 0;
      }
    }
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank) {
        await(meeting.told(peer), peer);
      }
    }
    if (same && finite) {
      return;
    }
    finished();
    throw same
        ? new NotFiniteException(CallTable.ofNotFinite(meeting, rank, size()))
        : new MismatchedCallException(CallTable.ofMismatch(meeting, rank, size()));
  }

  /** Notes what this rank is about to do. Allocates nothing, but for a thread's first call. */
  private void begin(
      long number, Call.Kind kind, int element, long count, ReduceOp op, int root, byte[] name) {
    ByteBuffer call = calls.next();
    Call.write(call, number, kind, element, count, op, root);
    Call.writeOwn(call, enqueued, -1, name);
    if (caller.get() != Thread.currentThread()) {
      caller = new WeakReference<>(Thread.currentThread());
      contexts.calledBy(Thread.currentThread());
    }
  }

  /** Notes that the call that began last has ended here. */
  public void finished() {
    calls.finished();
  }

  /**
   * Notes a call that a device carries out without the host's meeting the others. The caller holds
   * this group's lock.
   *
   * @param buffer what it is about
   * @param op the reduction, or null for a broadcast
   * @param root the rank that has the data of a broadcast
   */
  public void enqueues(DeviceBuffer buffer, ReduceOp op, int root) {
    if (enqueued >= 0) {
      enqueued++;
    }
    begin(
        enqueued,
        op == null ? Call.Kind.BROADCAST : Call.Kind.ALL_REDUCE,
        Call.element(buffer.type()),
        buffer.count(),
        op,
        op == null ? root : Call.NO_ROOT,
        ((AbstractDeviceBuffer) buffer).nameBytes());
    calls.enqueued();
  }

  /**
   * Whether something that {@link #enqueues} told of may not be done.
   *
   * @return false if {@link #settled} came after it
   */
  public boolean isUnsettled() {
    return calls.isEnqueued();
  }

  /** Notes that the device has done all that {@link #enqueues} told of. */
  public void settled() {
    calls.settled();
  }

  /** Says that from now on calls are made that nobody counts: those in graphs of the driver's. */
  public void countsNoMore() {
    enqueued = -1;
  }

  /**
   * How many calls were enqueued, as {@link #enqueues} counts them.
   *
   * @return 0 or more, or a negative number if they are not counted
   */
  public long enqueued() {
    return enqueued;
  }

  /**
   * How many calls have met on the host.
   *
   * @return those of the library included
   */
  public long met() {
    return sequence;
  }

  /**
   * Tells all ranks at the next meeting that this rank has found an element that is not a number;
   * all of them throw. The caller holds this group's lock.
   *
   * @param index of the first such element, or a negative number if there is none
   */
  public void found(long index) {
    notFinite = index;
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
    meet(Call.Kind.ALL_REDUCE, buffer, op, Call.NO_ROOT);
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
    meet(Call.Kind.BROADCAST, buffer, null, root);
  }

  /**
   * Meets for a registration. The caller holds this group's lock.
   *
   * @param buffer what is to be registered
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  public void meetForRegistration(DeviceBuffer buffer) {
    meet(Call.Kind.REGISTER, buffer, null, Call.NO_ROOT);
  }

  /** Counts calls from here on, for messages; every rank does so after the same call. */
  public synchronized void countFromHere() {
    before = sequence;
    calls.clear();
  }

  /** Meets by messages that can bring a {@link Cargo}; every rank does so after the same call. */
  void meetWithCargo() {
    carrier = new MessageMeeting(this, CARGO, Cargo.most(size()));
    meetOn(carrier);
  }

  /** Meets in another way from the next call on; every rank does so after the same call. */
  void meetOn(Meeting newMeeting) {
    meeting = newMeeting;
  }

  /**
   * Notes what this rank is doing with single others, for the messages of exceptions.
   *
   * @param destination the rank to send to, or {@link #NO_RANK}
   * @param source the rank to receive from, or {@link #NO_RANK}
   */
  void beginPair(Call.Kind kind, int element, long count, int destination, int source, int tag) {
    requireUsable();
    pair = true;
    pairs.begin(destination, source, tag);
    begin(sequence - before, kind, element, count, null, tag, NO_NAME);
  }

  /** How far this rank has come with single others. */
  Pairs pairs() {
    return pairs;
  }

  /** The tag of the last call with single others. */
  int tag() {
    return pairs.tag();
  }

  /** Waits for a rank that this one sends to, to come to this round. */
  void awaitReceiver(Message message, int peer) {
    wait.await(message, peer, Stance.Phase.SEND, pairs.roundsSentTo(peer));
  }

  /** Waits for a rank that this one receives from, to come to this round. */
  void awaitSender(Message message, int peer) {
    wait.await(message, peer, Stance.Phase.RECEIVE, pairs.roundsReceivedFrom(peer));
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
    wait.await(message, peer, Stance.Phase.DATA, 0);
  }

  /**
   * A rank as a reader finds it: its number, its host and its process.
   *
   * @param peer a rank of the group
   * @return for example {@code rank 3 (host=node7, process=4711)}
   */
  public String name(int peer) {
    String place = placeOf(peer);
    return "rank " + peer + (place.isEmpty() ? "" : " (" + place + ")");
  }

  /**
   * Several ranks as {@link #name} calls them, or their numbers if they are many.
   *
   * @param peers ranks of the group
   * @return for example {@code rank 1 (host=node7, process=4711) and rank 2 (...)}
   */
  public String names(List<Integer> peers) {
    return peers.size() > 4
        ? "ranks " + peers
        : peers.stream().map(this::name).collect(Collectors.joining(" and "));
  }

  /** What all its ranks call it. */
  StandOff.Key key() {
    return key;
  }

  /** What a rank of the group is called in the job. */
  int worldRank(int peer) {
    return members[peer];
  }

  ByteBuffer currentCallBytes() {
    return calls.currentBytes();
  }

  /** What looks for ranks that wait for each other. */
  StandOff standOff() {
    return contexts.standOff();
  }

  /**
   * Whether this rank has come to the call that another one waits for. It never says no after yes.
   *
   * @param number see {@link Stance}
   * @param worldRank that of the rank that waits
   */
  boolean hasComeTo(Stance.Phase phase, long number, int tag, int worldRank) {
    int peer = memberOf(worldRank);
    if (peer == NO_RANK) {
      return true;
    }
    return switch (phase) {
      case MEETING -> sequence >= number;
      case SEND -> pairs.reachedAsReceiver(peer, tag) >= number;
      case RECEIVE -> pairs.reachedAsSender(peer, tag) >= number;
      case DATA -> true;
    };
  }

  private int memberOf(int worldRank) {
    return ranks().stream().filter(peer -> members[peer] == worldRank).findFirst().orElse(NO_RANK);
  }

  /** Who waits for whom, as this rank sees it. */
  String describe(Probe circle) {
    return "rank=" + rank + ", " + during() + ":" + circle.table(this::nameInJob);
  }

  private String nameInJob(int worldRank) {
    int peer = memberOf(worldRank);
    return peer == NO_RANK ? "rank " + worldRank + " of the job" : name(peer);
  }

  /** Where a rank runs, or an empty text. */
  String placeOf(int peer) {
    return transport.placeOf(members[peer]);
  }

  /** All ranks, in their order. */
  List<Integer> ranks() {
    return IntStream.range(0, members.length).boxed().toList();
  }

  /** The ranks of a node, in their order. */
  List<Integer> ranksOf(int node) {
    return ranks().stream().filter(peer -> nodeOf(peer) == node).toList();
  }

  /** Whether a rank is known to have come to the call that this one is in. */
  boolean hasCome(int peer) {
    try {
      return !pair && meeting.arrival(peer).test();
    } catch (GradientSyncException e) {
      return false;
    }
  }

  /** Who has not come, or has come and not done its part, and what it did last. */
  String late(int peer) {
    if (pair) {
      return name(peer) + " did not join in time, lastFinished=" + calls.lastFinished();
    }
    // All ranks finish a call before the next, so what this one has finished, the others have.
    return missing(peer)
        + (test(meeting.arrival(peer), peer) ? " came and did not do its part" : " did not join")
        + " in time, lastFinished="
        + calls.lastFinished();
  }

  /** Why a rank has left. */
  String reasonOf(int peer) {
    String reason = goodbyes.reason(peer);
    if (reason.isEmpty()) {
      reason = contexts.reasonOf(members[peer]);
    }
    return reason.isEmpty() ? "it closed its side or ended" : reason;
  }

  /**
   * Ends a wait that has taken too long: asks all ranks for a report, writes this one's, and breaks
   * the group.
   *
   * @param message which ranks are missing, and how long this one has waited
   * @return the exception to throw
   */
  public RankLostException timedOut(String message) {
    String text = "timed out: " + message + ", rank=" + rank + ", " + during();
    if (reports != null && broken == null) {
      text += reports.collect(text, () -> report("timed out"));
    }
    return fail(new RankLostException(text));
  }

  /** Called by the thread that watches; takes no lock, as the holder may be stuck. */
  void answerIfAsked() {
    reports.answerIfAsked(() -> report(""));
  }

  /** Likewise. Seldom while calls are made, so that it takes little from what else uses MPI. */
  void answerMessages() {
    long now = System.nanoTime();
    if (calls.areQuietFor(QUIET_NANOS) || now - lookedAt > LOOK_NANOS) {
      lookedAt = now;
      reports.answerQuestions();
    }
  }

  private List<String> report(String why) {
    return RankReport.of(
        Watched.line(placeOf(rank), why, wait.state(), calls, caller.get()),
        calls.lines(),
        contexts.states(this, states));
  }

  /** This group in another's report. */
  List<String> lines() {
    String waiting = wait.state();
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add(
        "communicator "
            + context
            + ", rank "
            + rank
            + " of "
            + size()
            + ": "
            + (waiting.isEmpty() ? "waits for nobody" : waiting));
    calls.lines().forEach(line -> lines.add("  " + line));
    return lines;
  }

  /**
   * Adds to this rank's reports.
   *
   * @param state gives lines of text; called by any thread
   */
  public void addState(Supplier<List<String>> state) {
    states.add(state);
  }

  /**
   * Adds what is looked at ten times a second while a call waits on the host.
   *
   * @param check throws what {@link #lost} or {@link #mismatched} give, if waiting is in vain
   */
  public void addCheck(Runnable check) {
    wait.addCheck(check);
  }

  /**
   * Takes back {@link #addCheck}.
   *
   * @param check what was given there
   */
  public void removeCheck(Runnable check) {
    wait.removeCheck(check);
  }

  /**
   * Breaks the group because the ranks' calls do not match, where that shows too late for going on.
   *
   * @param table who asked for what
   * @return the exception to throw
   */
  public MismatchedCallException mismatched(String table) {
    return fail(new MismatchedCallException(table));
  }

  /**
   * What this rank is doing, or did last.
   *
   * @return as in the tables of who asked for what
   */
  public String currentCall() {
    return calls.current();
  }

  /**
   * Whether a rank is still there, as far as this one can see or has been told.
   *
   * @param peer a rank of the group
   * @return false if it is known to have died
   */
  public boolean isAlive(int peer) {
    return transport.isAlive(members[peer]) && !contexts.hasDied(members[peer]);
  }

  /**
   * Who is known to have died without a word: the rank that this one waits for; or if that is on
   * another node, and cannot see who dies here, one for which it may be waiting itself.
   *
   * @return {@link #NO_RANK} if nobody is
   */
  int deadWhileWaitingFor(int peer) {
    if (!isAlive(peer)) {
      return peer;
    }
    boolean sees = nodeOf(peer) == nodeOf(rank);
    return sees || pair
        ? NO_RANK
        : ranks().stream().filter(this::diedSilently).findFirst().orElse(NO_RANK);
  }

  private boolean diedSilently(int peer) {
    return peer != rank && !isAlive(peer) && !goodbyes.has(peer);
  }

  /** Remembers what ranks of another node have seen: that one of them has died. */
  void noteDeath(int peer) {
    contexts.noteDeath(members[peer]);
  }

  /** Whether a rank has died, or has said what ended it: it hears nothing any more. */
  boolean isGone(int peer) {
    return !isAlive(peer)
        || !goodbyes.reason(peer).isEmpty()
        || !contexts.reasonOf(members[peer]).isEmpty();
  }

  /** Whether a rank has left or is gone, or may be. */
  boolean isDeaf(int peer) {
    try {
      return goodbyes.has(peer) || isGone(peer);
    } catch (GradientSyncException e) {
      return true;
    }
  }

  boolean test(Message message, int peer) {
    try {
      return message.test();
    } catch (RankLostException e) {
      throw lost(name(peer) + " is lost: " + e.getMessage(), e.getCause());
    } catch (GradientSyncException e) {
      throw lost(e.getMessage(), e);
    }
  }

  /** For whom a call waits that waits for a rank. */
  String awaited(int peer) {
    return pair ? name(peer) : missing(peer);
  }

  /** Whether a rank has given up in the middle of a call. */
  boolean isAbandoned(int peer) {
    return meeting.abandoned(peer);
  }

  /** The last call that has ended here, as a user reads it, or "none". */
  String lastFinished() {
    return calls.lastFinished();
  }

  private String missing(int waitedFor) {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < members.length; peer++) {
      if (peer != rank && !test(meeting.arrival(peer), peer)) {
        missing.add(peer);
      }
    }
    return missing.size() > 1 ? names(missing) : name(waitedFor);
  }

  /** What this rank is doing, for the end of an error message. */
  String during() {
    return "in=" + calls.current() + " of communicator " + context + " with " + size() + " ranks";
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
    Watch.remove(this);
    try {
      goodbyes.say("", this::isDeaf);
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot say goodbye", rank, e); // MPI is over already
    }
    goodbyes.close();
    if (reports != null) {
      reports.close();
    }
    messages.close();
    if (carrier != null) {
      carrier.close();
    }
    contexts.closed(this, context, broken == null);
    contexts.standOff().forget(key);
    if (context == 0) {
      contexts.standOff().close();
      transport.close();
    }
  }

  /**
   * Tells the other ranks that this one leaves, in every group of the job that is still open. Takes
   * no group's lock and waits for no rank: for the end of the process.
   *
   * @return false if a group is or was broken, so that not all ranks may come to the end of the job
   */
  public boolean leaveAll() {
    return leaveAll("");
  }

  /**
   * As {@link #leaveAll()}, saying why.
   *
   * @param reason what ended this rank, for the texts of the others' exceptions
   * @return false if a group is or was broken
   */
  public boolean leaveAll(String reason) {
    boolean sound = !contexts.everBroken();
    contexts.standOff().close(); // the messages below may end at any time
    for (Group group : contexts.open()) {
      sound &= group.broken == null;
      Watch.remove(group);
      if (group.reports != null) {
        group.reports.silence();
      }
      try {
        group.goodbyes.say(reason, group::isGone);
      } catch (GradientSyncException e) {
        sound = false; // and the other groups are told all the same
      }
    }
    return sound;
  }

  /**
   * Why the job ends, if another rank has said so. Takes no lock: for the end of the process.
   *
   * @return for example {@code rank 1 (host=node7, process=4711): java.lang.Error: boom}, or an
   *     empty text
   */
  public String endedBy() {
    for (int peer = 0; peer < members.length; peer++) {
      String reason = goodbyes.reason(peer);
      if (!reason.isEmpty()) {
        return name(peer) + ": " + reason;
      }
    }
    return "";
  }

  /**
   * Whether no rank is known to have died.
   *
   * @return false if one is gone
   */
  public boolean isComplete() {
    boolean complete = true;
    for (int peer = 0; peer < members.length; peer++) {
      complete &= isAlive(peer);
    }
    return complete;
  }

  boolean isWorld() {
    return context == 0;
  }

  String goodbyeOf(int peer) {
    return goodbyes.reason(peer);
  }
}

package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The ranks that take part in one communicator ({@link RankMap}), and what all their calls have in
 * common: a tag range of their own, rendezvous before data moves ({@link CallMatcher}), remembering
 * what was called ({@link Calls}), waiting with a deadline ({@link Wait}), knowing who is still
 * there ({@link Liveness}), reporting what is wrong ({@link Reports}), and saying goodbye ({@link
 * DepartureNotices}).
 *
 * <p>Every collective begins with a rendezvous, in which each rank tells every other what it asks
 * for. So calls that differ are found before any buffer is touched, and a rank that is missing is
 * known by its number.
 *
 * <p>Its lock orders the calls of several threads; everything here is called with it held, or says
 * so.
 */
public final class ProcessGroup implements AutoCloseable {
  /**
   * Channels below this are the library's; a user's tag t is USER_CHANNEL + 2t and the one after
   * it.
   */
  static final int USER_CHANNEL = 16;

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
  static final int PAYLOAD = 8;

  private static final int CHANNEL_BITS = 13;
  private static final long QUIET_NANOS = 500_000_000;
  private static final long LOOK_NANOS = 1_000_000_000;
  private static final long WORD_NANOS = 200_000_000;
  private static final Logger log = LoggerFactory.getLogger(ProcessGroup.class);

  private final Transport transport;
  private final ContextIds contexts;
  private final int context;
  private final DeadlockDetector.Key key;
  private final RankMap members;
  private Timeouts timeouts;

  private final Calls calls;
  private final CallMatcher matcher;
  private final DepartureNotices departures;
  private final Liveness liveness;
  private final Wait wait;
  private final Reports reports; // or null
  private final List<Supplier<List<String>>> states = new CopyOnWriteArrayList<>();
  private long lookedAt = System.nanoTime(); // for messages, by the thread that does
  private volatile GradientSyncException broken;
  private boolean closed;

  private ProcessGroup(
      Transport transport,
      ContextIds contexts,
      int context,
      long generation,
      RankMap members,
      Timeouts timeouts,
      long id) {
    this.transport = transport;
    this.contexts = contexts;
    this.context = context;
    this.key = new DeadlockDetector.Key(context, id);
    this.members = members;
    this.timeouts = timeouts;
    calls = new Calls(contexts);
    matcher = new CallMatcher(this, members, calls, CALLS);
    departures = DepartureNotices.of(this, GOODBYE, generation);
    liveness = new Liveness(members, transport, contexts, departures);
    wait = new Wait(this, members, matcher, liveness, departures);
    Path folder = timeouts.reports().orElse(null);
    reports =
        size() == 1 || folder == null
            ? null
            : new Reports(
                new ReportFolder(folder, id, rank()),
                contexts.bell(folder),
                reportRequest(generation),
                this);
    contexts.opened(this, context);
    if (reports != null && context != 0) {
      Watch.add(this, reports.asksByMessages());
    }
  }

  /** For other nodes; null where there are none, or where the watch cannot look for messages. */
  private RemoteReportRequest reportRequest(long generation) {
    boolean oneNode = members.onNode(nodeOf(rank())).size() == size();
    return oneNode || !transport.takesOtherThreads()
        ? null
        : new RemoteReportRequest(this, QUESTION, ANSWER, generation);
  }

  /**
   * All ranks of a job, from which the groups of syncs and communicators are {@linkplain #split
   * split}. Does not communicate.
   *
   * @param transport the way to the other ranks, which this group closes
   * @return the group; one for the life of the transport
   */
  public static ProcessGroup world(Transport transport) {
    int[] all = IntStream.range(0, transport.size()).toArray();
    RankMap members = new RankMap(transport, all, transport.rank());
    Timeouts none = new Timeouts(Settings.DEFAULT_TIMEOUT, Settings.DEFAULT_LATE, Optional.empty());
    return new ProcessGroup(transport, new ContextIds(transport), 0, 0, members, none, 0);
  }

  /**
   * This rank's number in the group.
   *
   * @return from 0 to size - 1
   */
  public int rank() {
    return members.rank();
  }

  /**
   * The number of ranks in the group.
   *
   * @return 1 or more
   */
  public int size() {
    return members.size();
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
    return timeouts.timeout();
  }

  /**
   * How long a call waits, and what it does meanwhile.
   *
   * @return what this group was made with
   */
  public Timeouts timeouts() {
    return timeouts;
  }

  /**
   * The node that a rank runs on.
   *
   * @param peer a rank of the group
   * @return see {@link Transport#nodeOf}
   */
  public int nodeOf(int peer) {
    return members.nodeOf(peer);
  }

  /**
   * Divides the group. Collective. The rules are those of {@link
   * org.gradientsync.Communicator#split}.
   *
   * @param color which new group this rank joins; none if negative
   * @param key orders the ranks in it
   * @param newTimeouts how long the new group's calls wait for another rank
   * @return the new group, or null
   */
  public synchronized ProcessGroup split(int color, int key, Timeouts newTimeouts) {
    Objects.requireNonNull(newTimeouts, "timeouts");
    if (context == 0) {
      timeouts = newTimeouts; // the world has none of its own
    }
    GroupSplit.Part part = new GroupSplit(this, contexts).agree(color, key);
    if (part == null) {
      return null;
    }
    int[] worldRanks = members.worldRanks(part.peers());
    return new ProcessGroup(
        transport,
        contexts,
        part.context(),
        part.generation(),
        new RankMap(transport, worldRanks, part.rank()),
        newTimeouts,
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
    return transport.sender(memory, members.worldRank(peer), context << CHANNEL_BITS | channel);
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
    return transport.receiver(memory, members.worldRank(peer), context << CHANNEL_BITS | channel);
  }

  /** Its ranks. Taken by any thread, like the next three. */
  RankMap members() {
    return members;
  }

  /** What this rank has called. */
  Calls calls() {
    return calls;
  }

  /** How the ranks come together for calls. */
  CallMatcher matcher() {
    return matcher;
  }

  /** Which of them are still there. */
  Liveness liveness() {
    return liveness;
  }

  /** Notes that the call that began last has ended here. */
  public void finished() {
    calls.log().finished();
  }

  /**
   * Notes a call that a device carries out without the host's rendezvous the others. The caller
   * holds this group's lock.
   *
   * @param buffer what it is about
   * @param op the reduction, or null for a broadcast
   * @param root the rank that has the data of a broadcast
   */
  public void enqueues(DeviceBuffer buffer, ReduceOp op, int root) {
    calls.enqueues(buffer, op, root);
  }

  /**
   * The last call, if it is one that {@link #enqueues} told of and that may not be done.
   *
   * @return its number, for {@link #settled}; otherwise 0
   */
  public long unsettled() {
    return calls.log().unsettled();
  }

  /**
   * Notes that the device has done what {@link #enqueues} told of.
   *
   * @param call the last one of what it has done, as {@link #unsettled} numbers it
   */
  public void settled(long call) {
    calls.log().settled(call);
  }

  /** Says that from now on calls are made that nobody counts: those in graphs of the driver's. */
  public void countsNoMore() {
    calls.countsNoMore();
  }

  /**
   * How many calls were enqueued, as {@link #enqueues} counts them.
   *
   * @return 0 or more, or a negative number if they are not counted
   */
  public long enqueued() {
    return calls.enqueued();
  }

  /**
   * How many calls have met on the host.
   *
   * @return those of the library included
   */
  public long met() {
    return calls.met();
  }

  /**
   * Tells all ranks at the next rendezvous that this rank has found an element that is not a
   * number; all of them throw. The caller holds this group's lock.
   *
   * @param index of the first such element, or a negative number if there is none
   */
  public void found(long index) {
    matcher.found(index);
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
    matcher.meet(Call.Kind.ALL_REDUCE, buffer, op, Call.NO_ROOT);
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
    matcher.meet(Call.Kind.BROADCAST, buffer, null, root);
  }

  /**
   * Meets for a registration. The caller holds this group's lock.
   *
   * @param buffer what is to be registered
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  public void meetForRegistration(DeviceBuffer buffer) {
    matcher.meet(Call.Kind.REGISTER, buffer, null, Call.NO_ROOT);
  }

  /** Counts calls from here on, for messages; every rank does so after the same call. */
  public synchronized void countFromHere() {
    calls.countFromHere();
  }

  /** Waits for a message by which a rank comes to a call; see {@link PendingWait}. */
  void await(Message message, int peer, PendingWait.Phase phase, long number) {
    wait.await(message, peer, phase, number);
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
    wait.await(message, peer, PendingWait.Phase.DATA, 0);
  }

  /**
   * A rank as a reader finds it: its number, its host and its process.
   *
   * @param peer a rank of the group
   * @return for example {@code rank 3 (host=node7, process=4711)}
   */
  public String name(int peer) {
    return members.name(peer);
  }

  /**
   * Several ranks as {@link #name} calls them, or their numbers if they are many.
   *
   * @param peers ranks of the group
   * @return for example {@code rank 1 (host=node7, process=4711) and rank 2 (...)}
   */
  public String names(List<Integer> peers) {
    return members.names(peers);
  }

  /** What all its ranks call it. */
  DeadlockDetector.Key key() {
    return key;
  }

  /** How many ranks of the job run on this rank's node, whether they are in the group or not. */
  int ranksOnNode() {
    return contexts.ranksOnNode();
  }

  /** What looks for ranks that wait for each other. */
  DeadlockDetector deadlockDetector() {
    return contexts.deadlockDetector();
  }

  /** Who waits for whom, as this rank sees it. */
  String describe(Probe circle) {
    return "rank=" + rank() + ", " + during() + ":" + circle.table(members::nameInJob);
  }

  /**
   * Ends a wait that has taken too long: asks all ranks for a report, writes this one's, and breaks
   * the group.
   *
   * @param message which ranks are missing, and how long this one has waited
   * @return the exception to throw
   */
  public RankLostException timedOut(String message) {
    String text = "timed out: " + message + ", rank=" + rank() + ", " + during();
    if (reports != null && broken == null) {
      text += reports.collect(text, () -> report("timed out"));
    }
    return fail(new RankLostException(text));
  }

  /** What tells this process that the group is asked for reports. */
  Bell bell() {
    return reports.bell();
  }

  /** Called by the thread that watches; takes no lock, as the holder may be stuck. */
  void answerIfAsked() {
    reports.answerIfAsked(() -> report(""));
  }

  /** Likewise. Seldom while calls are made, so that it takes little from what else uses MPI. */
  void answerMessages() {
    long now = System.nanoTime();
    if (calls.log().areQuietFor(QUIET_NANOS) || now - lookedAt > LOOK_NANOS) {
      lookedAt = now;
      reports.answerQuestions();
    }
  }

  private List<String> report(String why) {
    return RankReport.of(
        RankReport.summary(members.placeOf(rank()), why, wait.state(), calls.log(), calls.caller()),
        calls.log().lines(),
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
            + rank()
            + " of "
            + size()
            + ": "
            + (waiting.isEmpty() ? "waits for nobody" : waiting));
    calls.log().lines().forEach(line -> lines.add("  " + line));
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
    return calls.log().current();
  }

  /**
   * Whether a rank is still there, as far as this one can see or has been told.
   *
   * @param peer a rank of the group
   * @return false if it is known to have died
   */
  public boolean isAlive(int peer) {
    return liveness.isAlive(peer);
  }

  /**
   * Why another rank has left, closing the group or ending its process, as it has said itself. For
   * any thread; takes no group's lock.
   *
   * @param peer another rank
   * @return for example {@code it closed its side or ended}, or an empty text if it has not left
   */
  public String whyLeft(int peer) {
    return liveness.whyLeft(peer);
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

  /** What this rank is doing, for the end of an error message. */
  String during() {
    return "in=" + currentCall() + " of communicator " + context + " with " + size() + " ranks";
  }

  /**
   * Breaks the group, for what goes wrong after the ranks have met: the others cannot go on either.
   *
   * @param message what happened; this rank and its call are added
   * @param cause what the layer below said, or null
   * @return the exception to throw
   * @throws GradientSyncException if the process ends, which is why it went wrong
   */
  public RankLostException lost(String message, Throwable cause) {
    if (isEnding()) {
      matcher.abandon();
      requireNotEnding(); // throws
    }
    return fail(new RankLostException(message + ", rank=" + rank() + ", " + during(), cause));
  }

  /** Breaks the group because a rank has left it, or has given up. */
  RankLostException lost(int peer, Throwable cause) {
    String why = whyGivenUp(peer);
    String reason = liveness.whyLeft(peer);
    if (!reason.isEmpty()) {
      return lost(name(peer) + " has left: " + reason, cause);
    }
    return lost(
        name(peer) + " gave up in the middle of a call: " + (why.isEmpty() ? "no word why" : why),
        cause);
  }

  /** Marks the group as broken: messages may be under way that nobody will receive. */
  private <E extends GradientSyncException> E fail(E cause) {
    if (broken == null) {
      broken = cause;
      try {
        departures.sayGivenUp(cause.getMessage(), liveness::isDeaf);
      } catch (RuntimeException | OutOfMemoryError e) {
        log.debug("rank {} cannot say why it has given up", rank(), e);
      } finally {
        matcher.abandon();
      }
    }
    return cause;
  }

  /**
   * Why another rank has given up a call of this group, in its own words. Waits a moment for them:
   * that it has given up can be seen before.
   *
   * @param peer another rank, which is known to have given up or left
   * @return what its exception says, or an empty text if it has not said so
   */
  public String whyGivenUp(int peer) {
    long start = System.nanoTime();
    while (!departures.hasAny(peer) && System.nanoTime() - start < WORD_NANOS) {
      LockSupport.parkNanos(WORD_NANOS / 100);
    }
    return departures.whyGivenUp(peer);
  }

  /**
   * Refuses a closed or broken group. Takes the lock itself.
   *
   * @throws IllegalStateException if it is closed
   * @throws RankLostException if an earlier call lost a rank
   * @throws GradientSyncException if the process {@linkplain #leaveAll ends}
   */
  public synchronized void requireUsable() {
    if (closed) {
      throw new IllegalStateException("communicator is closed: rank=" + rank());
    }
    requireNotEnding();
    if (broken != null) {
      throw new RankLostException(
          "communicator is broken by an earlier failure, rank="
              + rank()
              + ": "
              + broken.getMessage(),
          broken);
    }
  }

  /** Ends calls of a process that ends. Takes no lock. */
  void requireNotEnding() {
    if (isEnding()) {
      throw new GradientSyncException("this process is ending: rank=" + rank() + ", " + during());
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
      if (!isEnding()) { // otherwise it has been said
        departures.say(Departure.CLOSED, "", liveness::isDeaf);
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot say goodbye", rank(), e); // MPI is over already
    }
    Resources.closeAll( // a message that cannot be ended does not keep the rest
        departures,
        reports,
        matcher,
        () -> contexts.closed(this, context, broken == null),
        () -> contexts.deadlockDetector().forget(key),
        isWorld() ? contexts.deadlockDetector() : null,
        isWorld() ? transport : null);
  }

  /**
   * Tells the other ranks that this one leaves, in every group of the job that is still open. Takes
   * no group's lock and waits for no rank: for the end of the process. Calls that other threads
   * make from now on, or are in, throw.
   *
   * @return false if a group is or was broken, so that not all ranks may come to the end of the job
   */
  public boolean leaveAll() {
    return leaveAll(Departure.CLOSED, "");
  }

  /**
   * As {@link #leaveAll()}, saying how and why, for the texts of the others' exceptions.
   *
   * @param departure how this rank leaves
   * @param reason what failed and so ends the whole job, or an empty text
   * @return false if a group is or was broken
   */
  public boolean leaveAll(Departure departure, String reason) {
    boolean sound = !contexts.everBroken();
    List<ProcessGroup> open =
        contexts.open(); // before calls end, whose sync is closed without a word then
    contexts.end();
    contexts.deadlockDetector().close(); // the messages below may end at any time
    for (ProcessGroup group : open) {
      sound &= group.broken == null;
      Watch.remove(group);
      if (group.reports != null) {
        group.reports.silence();
      }
      try {
        group.departures.say(departure, reason, group.liveness::isGone);
      } catch (GradientSyncException e) {
        sound = false; // and the other groups are told all the same
      }
    }
    return sound;
  }

  /**
   * Whether {@link #leaveAll} has been called in this process. Takes no lock.
   *
   * @return true if no call can be made any more
   */
  public boolean isEnding() {
    return contexts.isEnding();
  }

  /**
   * Why the job ends, if another rank has said so. Takes no lock: for the end of the process.
   *
   * @return for example {@code rank 1 (host=node7, process=4711): java.lang.Error: boom}, or an
   *     empty text
   */
  public String endedBy() {
    return liveness.endedBy();
  }

  /**
   * Which other ranks have neither left nor died, as far as this one knows. Takes no lock: for the
   * end of the process.
   *
   * @return ranks of the group, in their order
   */
  public List<Integer> staying() {
    return members.all().stream().filter(peer -> peer != rank() && !liveness.isDeaf(peer)).toList();
  }

  /**
   * Whether no rank is known to have died.
   *
   * @return false if one is gone
   */
  public boolean isComplete() {
    return liveness.isComplete();
  }

  boolean isWorld() {
    return context == 0;
  }

  String departureOf(int peer) {
    return departures.reason(peer);
  }
}

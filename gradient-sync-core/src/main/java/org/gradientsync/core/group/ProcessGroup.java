package org.gradientsync.core.group;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.RankReport;
import org.gradientsync.core.diagnosis.Reports;
import org.gradientsync.core.diagnosis.Watch;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.CallMatcher;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.core.rendezvous.MatchingGroup;
import org.gradientsync.core.rendezvous.MessageMatcher;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The ranks that take part in one communicator, and what all their calls share.
 *
 * <p>A collective begins with a rendezvous, in which each rank learns the calls of all others,
 * unless its reducer compares calls on the device. So mismatches are found before any buffer is
 * touched, and a missing rank is identified.
 *
 * <p>The group's lock orders the calls of several threads. Callers hold it unless a method states
 * otherwise.
 */
public final class ProcessGroup implements MatchingGroup {
  private static final Logger log = LoggerFactory.getLogger(ProcessGroup.class);

  private final Job job;
  private final GroupParts parts;
  private final DepartureNotices departures;
  final LongWait longWait;
  final RankReport report;
  private final Optional<Reports> reports;
  private final GroupState state;
  private final Wait wait;
  private final CallMatcher matcher;
  private final MessageMatcher messageMatcher;
  private final Survivors survivors;
  private final Throwable[] ofAll = new Throwable[16]; // the last that all ranks have thrown
  private int ofAllCount;

  private ProcessGroup(GroupTransport messages, Job job, Timeouts timeouts, Survivors ofEarlier) {
    this.job = job;
    survivors = ofEarlier == null ? new Survivors(messages, job) : ofEarlier;
    departures = new DepartureNotices(messages, job.liveness);
    Liveness liveness = new Liveness(messages.ranks(), job.liveness, departures);
    Calls calls = new Calls(job.callerThreads, messages.size());
    Arrivals arrivals = new Arrivals(messages, calls, liveness);
    parts = new GroupParts(messages, liveness, calls, arrivals);
    longWait = new LongWait(parts, job.deadlockDetector);
    report = new RankReport(parts, longWait::state);
    report.add(() -> job.linesOfOthers(this));
    reports =
        timeouts
            .reports()
            .filter(folder -> messages.size() > 1)
            .map(folder -> new Reports(folder, job.number(), parts, report));
    state = new GroupState(parts, reports, job::isEnding);
    wait = new Wait(parts, state, longWait, job.ranksOnNode(), timeouts);
    matcher = new CallMatcher(this);
    messageMatcher = new MessageMatcher(this);
    job.opened(this);
    if (isWorld()) {
      job.liveness.watchWorld(departures);
    }
    reports.ifPresent(Watch::add);
  }

  /** Casts: the library has no other implementation. */
  public static ProcessGroup of(RankGroup group) {
    if (group instanceof ProcessGroup own) {
      return own;
    }
    throw new IllegalArgumentException(
        "not a group of this library: group=" + group + "; a backend gives a Transport");
  }

  /** The group of all ranks of a job. Does not communicate. Closes the transport. */
  public static ProcessGroup world(Transport transport) {
    int[] all = IntStream.range(0, transport.size()).toArray();
    RankMap ranks = new RankMap(transport, all, transport.rank());
    Timeouts none = new Timeouts(Settings.DEFAULT_TIMEOUT, Settings.DEFAULT_LATE, Optional.empty());
    GroupTransport messages = new GroupTransport(transport, ranks, GroupKey.WORLD);
    return new ProcessGroup(messages, new Job(messages), none, null);
  }

  @Override
  public int rank() {
    return ranks().rank();
  }

  @Override
  public int size() {
    return ranks().size();
  }

  @Override
  public Transport transport() {
    return messages().transport();
  }

  @Override
  public Timeouts timeouts() {
    return wait.timeouts;
  }

  @Override
  public ProcessGroup split(int color, int key) {
    return split(color, key, timeouts());
  }

  public ProcessGroup split(int color, int key, Timeouts newTimeouts) {
    return split(isWorld() ? Origin.CREATE : Origin.COMMUNICATOR_SPLIT, color, key, newTimeouts);
  }

  /** As above, for another call of the user. Returns null if the color is negative. */
  public synchronized ProcessGroup split(Origin origin, int color, int key, Timeouts newTimeouts) {
    if (isWorld()) {
      wait.timeouts = newTimeouts; // the world has no time-outs of its own
    }
    GroupTransport part = new GroupSplit(this, exchange(), origin).agree(color, key);
    return part == null
        ? null
        : new ProcessGroup(part, job, newTimeouts, job.takeFirst() ? survivors : null);
  }

  /**
   * Makes a group of the ranks that are left, in their order, and closes this one. Called by all of
   * them; breaks this group, so that the calls of those that do not know yet end. Throws if the
   * others have gone on without this rank, too few have come, or a job of this kind cannot go on.
   */
  public synchronized ProcessGroup survivors() {
    transport().goOnWithout(List.of());
    state.requireOpen();
    if (!state.isBroken()) {
      state.broken("this rank goes on with the ranks that are left", null);
    }
    GroupTransport part = survivors.agree(parts, state, timeouts());
    List<Integer> lost = survivors.lost();
    transport().goOnWithout(lost);
    transport().leaveSilent(survivors.silent());
    job.goOnWithout(lost);
    ProcessGroup next = new ProcessGroup(part, job, timeouts(), survivors);
    if (!isWorld()) {
      close(null);
    }
    return next;
  }

  /** Whether ranks have said that they leave this group. */
  public boolean haveSomeLeft() {
    return ranks().all().stream().anyMatch(departures::hasLeft);
  }

  public RankMap ranks() {
    return parts.ranks();
  }

  public GroupTransport messages() {
    return parts.messages();
  }

  public int worldRank() {
    return ranks().worldRank(rank());
  }

  public Job job() {
    return job;
  }

  /** A new way to move Java buffers between the ranks, for one thread at a time. */
  public Exchange exchange() {
    return new Exchange(messages(), wait);
  }

  public CallMatcher matcher() {
    return matcher;
  }

  @Override
  public Calls deviceCalls() {
    return parts.calls();
  }

  @Override
  public void run(CollectiveCall call, Consumer<CollectiveCall> body) {
    run(parts.calls().origin(), call, body);
  }

  public synchronized void run(Origin origin, CollectiveCall call, Consumer<CollectiveCall> body) {
    if (call.kind().isMessage()) {
      messageMatcher.meet(origin, call);
    } else {
      matcher.meet(origin, call);
    }
    runMet(call, body);
  }

  @Override
  public <C> void runMet(C call, Consumer<C> body) {
    try {
      body.accept(call);
    } catch (RuntimeException | Error e) {
      throw state.failed(e);
    }
    parts.calls().finished();
  }

  @Override
  public void meetToPrepare(CollectiveCall call) {
    matcher.meet(Origin.REGISTER, call);
    parts.calls().finished();
  }

  @Override
  public void exchange(List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body) {
    exchange(Origin.SYNC, messages, body);
  }

  public synchronized void exchange(
      Origin origin, List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body) {
    messageMatcher.exchange(origin, messages, body);
  }

  @Override
  public void await(Message message, int peer) {
    wait.await(message, peer);
  }

  @Override
  public void await(Message message, int peer, WaitPhase phase, long number) {
    wait.await(message, peer, phase, number);
  }

  @Override
  public boolean test(Message message, int peer) {
    return state.test(message, peer);
  }

  @Override
  public String name(int peer) {
    return ranks().name(peer);
  }

  @Override
  public String names(List<Integer> peers) {
    return ranks().names(peers);
  }

  @Override
  public GroupParts parts() {
    return parts;
  }

  @Override
  public RankLostException timedOut(String message) {
    return state.timedOut(message);
  }

  /** Adds lines to this rank's reports. Any thread may call this, and the supplier. */
  public void addState(Supplier<List<String>> state) {
    report.add(state);
  }

  @Override
  public void addCheck(Runnable check) {
    wait.watchers.checks.add(check);
  }

  @Override
  public void removeCheck(Runnable check) {
    wait.watchers.checks.remove(check);
  }

  @Override
  public MismatchedCallException mismatched(String table) {
    return state.mismatched(table);
  }

  @Override
  public synchronized void thrownByAll(RuntimeException failure) {
    ofAll[ofAllCount++ % ofAll.length] = failure;
  }

  /** Whether this is one of the last exceptions of {@link #thrownByAll}. */
  public synchronized boolean haveAllThrown(Throwable failure) {
    return Arrays.stream(ofAll).anyMatch(one -> one == failure);
  }

  @Override
  public boolean isAlive(int peer) {
    return parts.liveness().isAlive(peer);
  }

  @Override
  public String whyLeft(int peer) {
    return parts.liveness().whyLeft(peer);
  }

  @Override
  public RankLostException broken(String message, Throwable cause) {
    return state.broken(message, cause);
  }

  @Override
  public RuntimeException failed(Throwable cause) {
    return state.failed(cause);
  }

  @Override
  public RankLostException lost(int peer, Throwable cause) {
    return state.lost(peer, cause);
  }

  @Override
  public boolean hasGivenUp(int peer) {
    return parts.liveness().departures().hasLeftOrFailed(peer);
  }

  @Override
  public String whyGivenUp(int peer) {
    return state.whyGivenUp(peer);
  }

  @Override
  public synchronized void requireUsable() {
    state.requireUsable();
  }

  @Override
  public synchronized boolean isBroken() {
    return state.isBroken();
  }

  @Override
  public void close() {
    close(Departure.CLOSED);
  }

  /** Notifies the others of a departure that is not null. A second call does nothing. */
  public synchronized void close(Departure departure) {
    if (!state.close()) {
      return;
    }
    reports.ifPresent(Watch::remove);
    try {
      if (departure != null && !job.isEnding()) { // otherwise leave() has sent it
        departures.send(departure, "", finishedCalls(), parts.liveness()::isUnreachable);
      }
    } catch (RuntimeException e) { // the rest is closed nevertheless
      log.debug("rank {} cannot send that it leaves", rank(), e); // MPI is finalized already
    }
    if (isWorld()) {
      job.liveness.watchWorld(null);
    }
    Resources.closeAll( // one failure does not skip the rest
        departures,
        parts.arrivals(),
        () -> job.closed(this, !state.isBroken()),
        isWorld() ? job.deadlockDetector : null,
        isWorld() ? transport() : null);
  }

  /** Sends the notices of a process that ends. Returns whether no call has failed. */
  boolean leave(Departure departure, String reason) {
    reports.ifPresent(Watch::remove);
    boolean sound = !state.isBroken();
    departures.send(departure, reason, finishedCalls(), parts.liveness()::isGone);
    return sound;
  }

  private long finishedCalls() {
    Calls calls = deviceCalls();
    return calls.met() - (calls.isRunning() ? 1 : 0);
  }

  private boolean isWorld() {
    return parts.key().isWorld();
  }
}

package org.gradientsync.core.group;

import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.diagnosis.Reports;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallTable;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.spi.Message;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a group is usable, and how it breaks: a failed call notifies the other ranks, and every
 * later call throws. Takes no lock; the thread that breaks the group holds the group's.
 */
final class GroupState {
  private static final long NOTICE_NANOS = 200_000_000;
  private static final Logger log = LoggerFactory.getLogger(ProcessGroup.class);

  private final GroupParts group;
  private final DepartureNotices departures;
  private final Optional<Reports> reports;
  private final BooleanSupplier ending;
  private volatile GradientSyncException broken;
  private volatile boolean closed;

  GroupState(GroupParts group, Optional<Reports> reports, BooleanSupplier ending) {
    this.group = group;
    departures = group.liveness().departures();
    this.reports = reports;
    this.ending = ending;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("communicator is closed: rank=" + group.rank());
    }
  }

  /** Throws if the group is closed or broken, or the process is ending. */
  void requireUsable() {
    requireOpen();
    requireNotEnding();
    if (broken != null) {
      throw new RankLostException(
          "communicator is broken by an earlier failure, rank=%s: %s"
              .formatted(group.rank(), broken.getMessage()),
          broken,
          isRepeatable(broken));
    }
  }

  void requireNotEnding() {
    if (ending.getAsBoolean()) {
      throw new GradientSyncException(
          "this process is ending: rank=" + group.rank() + ", " + group.during());
    }
  }

  boolean isBroken() {
    return broken != null;
  }

  /** Returns false if the group was closed before. */
  boolean close() {
    boolean first = !closed;
    closed = true;
    return first;
  }

  /** Whether a message has finished. Breaks the group if it never will. */
  boolean test(Message message, int peer) {
    try {
      return message.test();
    } catch (RankLostException e) {
      throw broken(group.ranks().name(peer) + " is lost: " + e.getMessage(), e.getCause());
    } catch (RuntimeException e) { // of any transport
      throw broken(e instanceof GradientSyncException ? e.getMessage() : e.toString(), e);
    }
  }

  /** What a call throws if it has failed in the middle, by an exception of any kind. */
  RuntimeException failed(Throwable e) {
    return isBroken() && (e == broken || e instanceof RankLostException)
        ? (RuntimeException) e
        : broken("the call failed in the middle: " + e, e);
  }

  RankLostException timedOut(String message) {
    String text = "timed out: " + message + ", rank=" + group.rank() + ", " + group.during();
    String where = broken != null ? "" : reports.map(all -> all.collect(text)).orElse("");
    return fail(new RankLostException(text + where));
  }

  MismatchedCallException mismatched(String table) {
    return fail(new MismatchedCallException(table));
  }

  RankLostException broken(String message, Throwable cause) {
    return broken(message, cause, cause != null && isRepeatable(cause));
  }

  /**
   * Whether the same job would fail the same way again: by itself, for too little memory for
   * example. Messages and devices fail with this library's exceptions, and may do better the next
   * time. An InternalError comes from memory of another rank whose file is gone.
   */
  private static boolean isRepeatable(Throwable failure) {
    if (failure instanceof RankLostException lost) {
      return lost.exitCode() != RankLostException.EXIT_CODE;
    }
    return failure instanceof UnavailableException
        || failure instanceof MismatchedCallException
        || failure instanceof NotFiniteException
        || !(failure instanceof GradientSyncException || failure instanceof InternalError);
  }

  private RankLostException broken(String message, Throwable cause, boolean left) {
    if (ending.getAsBoolean()) {
      group.arrivals().rendezvous().abandon(group.calls().isRunning());
      requireNotEnding(); // throws
    }
    boolean hasClosed = message.contains(Departure.CLOSED.text());
    String advice = hasClosed ? CallTable.adviceAfterClose(group.calls()) : "";
    return fail(
        new RankLostException(
            message + ", rank=" + group.rank() + ", " + group.during() + advice, cause, left));
  }

  RankLostException lost(int peer, Throwable cause) {
    String why = whyGivenUp(peer);
    String reason = group.liveness().whyLeft(peer);
    String name = group.ranks().name(peer);
    if (!reason.isEmpty()) {
      boolean bySignal = reason.contains(Departure.SIGNAL.text());
      int dead = bySignal ? group.liveness().diedSilently() : RankMap.NO_RANK;
      if (dead != RankMap.NO_RANK) { // the launcher then sends the signal to all others
        return broken(group.ranks().name(dead) + " " + group.liveness().fate(dead), cause, false);
      }
      boolean mayComeAgain = bySignal || reason.equals(Departure.STAYED.text());
      boolean byItself = why.isEmpty() ? !mayComeAgain : departures.hasFailedByItself(peer);
      return broken(name + " has left: " + reason, cause, byItself);
    }
    return broken(
        name + " gave up in the middle of a call: " + (why.isEmpty() ? "reason unknown" : why),
        cause,
        departures.hasFailedByItself(peer));
  }

  /** Breaks the group. Messages that nobody will receive may be pending from now on. */
  private <E extends GradientSyncException> E fail(E cause) {
    if (broken == null) {
      broken = cause;
      try {
        departures.sendFailure(
            cause.getMessage(), isRepeatable(cause), group.liveness()::isUnreachable);
      } catch (RuntimeException | OutOfMemoryError e) {
        log.debug("rank {} cannot say why it has given up", group.rank(), e);
      } finally {
        group.arrivals().rendezvous().abandon(group.calls().isRunning());
      }
    }
    return cause;
  }

  String whyGivenUp(int peer) {
    long start = System.nanoTime();
    while (!departures.hasLeftOrFailed(peer) && System.nanoTime() - start < NOTICE_NANOS) {
      LockSupport.parkNanos(NOTICE_NANOS / 100);
    }
    return departures.whyGivenUp(peer);
  }
}

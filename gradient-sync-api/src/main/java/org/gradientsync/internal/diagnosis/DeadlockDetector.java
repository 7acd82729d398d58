package org.gradientsync.internal.diagnosis;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.ranks.GroupKey;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds ranks that wait for each other, so that none of them can ever go on: one sends and another
 * is in a barrier, say.
 *
 * <p>A rank that has waited long for another to come to a call sends it a probe. Who receives one,
 * and waits itself, adds its own wait and sends it on. A probe that comes back to one of its waits
 * has found a circle. A rank adds its wait only if it has not come, up to then, to the call that
 * the wait before is for; while it waits it cannot come there, and its wait ends only when the next
 * rank has come. So when the circle closes all of its waits still hold. (K. M. Chandy, J. Misra, L.
 * M. Haas: Distributed Deadlock Detection. ACM Transactions on Computer Systems 1(2), 1983; with
 * one rank waited for at a time.)
 *
 * <p>That holds in one communicator, whose lock the waiting thread has. If the waits are in several
 * communicators, another thread may be about to make the call that is waited for. They are looked
 * at only for ranks of which one thread alone has ever made calls, and the same circle must be
 * there for as long as makes a rank late.
 *
 * <p>Each rank has at most one question under way to each other, so one that never waits does not
 * find a heap of them. Nothing is sent before a wait has become long.
 */
public final class DeadlockDetector implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(DeadlockDetector.class);
  private static final long PROBE_NANOS = 300_000_000;

  private final ProbeChannel probes;
  private final BiConsumer<Probe, Integer> taker = this::take; // made before any call waits
  private final Groups groups;
  private final int rank;
  private final int ranks;
  private final Set<PendingWait> waits = new LinkedHashSet<>();
  private final List<Probe> asked = new ArrayList<>();
  private final Map<GroupKey, Probe> found = new HashMap<>();
  private final BitSet unread = new BitSet();
  private long lastId;
  private boolean closed;

  /** What it has to know of the groups that are open on this rank. */
  public interface Groups {
    /** The group that is open and has this key, or null. */
    WatchedGroup find(GroupKey key);

    /** Whether one thread alone has made all calls of this rank. */
    boolean hasSingleCaller();

    /** Whether a rank of the job hears nothing any more, as far as this one knows. */
    boolean isGone(int worldRank);
  }

  public DeadlockDetector(Transport transport, Groups groups) {
    this.probes = ProbeChannel.of(transport);
    this.groups = groups;
    this.rank = transport.rank();
    this.ranks = transport.size();
  }

  /** A number for a wait. */
  public synchronized long newId() {
    return ++lastId;
  }

  /** Notes that a wait is over. */
  public synchronized void leave(PendingWait pending) {
    waits.remove(pending);
  }

  /** Notes that a communicator is closed. */
  public synchronized void forget(GroupKey key) {
    found.remove(key);
  }

  /**
   * Called again and again by a thread that has waited long for a rank to come to a call.
   *
   * @return the circle that this wait is part of, or waits for; or null
   */
  public synchronized Probe look(PendingWait pending) {
    if (closed) {
      return null;
    }
    waits.add(pending);
    probes.read(taker);
    long now = pending.clock.waited();
    if (now - pending.probedAt > PROBE_NANOS && mayAsk(pending)) {
      pending.probedAt = now;
      ask(Probe.of(Probe.Kind.ASK), pending);
    }
    for (Probe probe : List.copyOf(asked)) {
      if (!isForAnother(probe, pending)) {
        asked.remove(probe);
        pass(probe, pending);
      }
    }
    return found.remove(pending.group.key());
  }

  private void take(Probe probe, int from) {
    Probe.Kind kind = probe.kind(ranks);
    if (kind == Probe.Kind.ASK) {
      asked.add(probe.copy(kind));
      send(Probe.of(Probe.Kind.READ), from);
    } else if (kind == Probe.Kind.READ) {
      unread.clear(from);
    } else if (kind == Probe.Kind.FOUND && groups.find(probe.group()) != null) {
      int own = probe.indexOf(rank);
      boolean isNew = found.put(probe.group(), probe.copy(kind)) == null;
      if (isNew
          && own > 0
          && probe.group(own).equals(probe.group())
          && !probe.group(own).equals(probe.group(0))) {
        tell(groups.find(probe.group()), probe.copy(kind)); // whom the finder does not know
      }
    }
  }

  /** Whether another thread waits in the call that a probe is about. */
  private boolean isForAnother(Probe probe, PendingWait pending) {
    GroupKey key = probe.group(probe.length() - 1);
    return !key.equals(pending.group.key())
        && waits.stream().anyMatch(other -> other.group.key().equals(key));
  }

  /** What becomes of a probe that asks for this rank, which waits. */
  private void pass(Probe probe, PendingWait pending) {
    int last = probe.length() - 1;
    WatchedGroup group = groups.find(probe.group(last));
    if (group == null
        || group != pending.group && !groups.hasSingleCaller()
        || group
            .arrivals()
            .hasReached(probe.phase(last), probe.number(last), probe.tag(last), probe.waiting(last))
        || !pending.isWaiting()) {
      return;
    }
    int own = probe.indexOf(rank);
    if (own >= 0 && probe.id(own) == pending.id) {
      closeCircle(probe.from(own), pending);
    } else if (own < 0 && !probe.isFull() && mayAsk(pending)) {
      ask(probe, pending);
    }
  }

  private boolean mayAsk(PendingWait pending) {
    return !unread.get(pending.awaited()) && !pending.group.liveness().isUnreachable(pending.peer);
  }

  /** Adds a wait to a chain, and asks the rank that it is for. */
  private void ask(Probe probe, PendingWait pending) {
    probe.add(rank, pending);
    unread.set(pending.awaited(), send(probe, pending.awaited()));
  }

  private void closeCircle(Probe circle, PendingWait pending) {
    long now = pending.clock.waited();
    if (pending.suspected == null || !pending.suspected.isSameCircle(circle)) {
      pending.suspected = circle;
      pending.suspectedAt = now;
    }
    if (!circle.isOfOneGroup() && now - pending.suspectedAt <= pending.lateNanos) {
      return;
    }
    found.put(pending.group.key(), circle);
    tell(pending.group, circle.copy(Probe.Kind.FOUND));
    for (int i = 1; i < circle.length(); i++) {
      if (!circle.group(i).equals(pending.group.key())) {
        Probe told = circle.copy(Probe.Kind.FOUND);
        told.setGroup(circle.group(i));
        send(told, circle.waiting(i));
      }
    }
  }

  /** Tells all ranks of a group, or none. */
  private void tell(WatchedGroup group, Probe circle) {
    if (group != null) {
      circle.setGroup(group.key());
      for (int peer = 0; peer < group.size(); peer++) {
        if (peer != group.rank() && !group.liveness().isUnreachable(peer)) {
          send(circle, group.ranks().worldRank(peer));
        }
      }
    }
  }

  /** To one that is gone nothing is sent: it can make MPI end this process. */
  private boolean send(Probe probe, int to) {
    if (groups.isGone(to)) {
      return false;
    }
    try {
      probes.send(probe, to);
      return true;
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot send to rank {}", rank, to, e);
      return false;
    }
  }

  /** From now on nothing is sent. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      probes.close();
    }
  }
}

package org.gradientsync.core.diagnosis;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.JobLiveness;
import org.gradientsync.core.ranks.Mailbox;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds ranks that wait for each other, so that none of them can continue: for example, one rank
 * sends while another is in a barrier.
 *
 * <p>A rank that has waited long for another rank to reach a call sends it a probe. A rank that
 * receives a probe, waits itself, and has not reached that call, adds its own wait and forwards the
 * probe. It cannot reach the call while it waits, and its wait ends only when the next rank
 * arrives; a send that the transport buffers ends at once, so it is not waited for. So if a probe
 * returns to one of its waits, it has found a cycle of which all waits still hold. (K. M. Chandy,
 * J. Misra, L. M. Haas: Distributed Deadlock Detection. ACM Transactions on Computer Systems 1(2),
 * 1983; with one rank waited for at a time.)
 *
 * <p>A probe of a rank outside the cycle does not return to its first wait. So after as many steps
 * as there are ranks it forgets its waits, and begins again at a rank that is in the cycle. Of
 * probes that cannot be sent yet, only the one that has passed the most ranks is kept, so that one
 * of them completes the cycle.
 *
 * <p>This holds within one communicator, whose lock the waiting thread holds. If the waits are in
 * several communicators, another thread may be about to make the missing call. Such waits count
 * only on ranks where a single thread has made all calls, and the same cycle must persist for the
 * time after which a rank is late.
 *
 * <p>Each rank has at most one unread probe to each other rank, so a rank that never waits does not
 * accumulate them. Nothing is sent before a wait has become long.
 */
public final class DeadlockDetector implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(DeadlockDetector.class);
  private static final long PROBE_NANOS = 300_000_000;

  private final Mailbox probes;
  private final Function<GroupKey, LongWait> waits; // of open groups, by key; null for others
  private final Set<Long> callers; // several, if several threads have made calls
  private final JobLiveness liveness;
  private final int rank;
  private final int ranks;
  private final List<Probe> asked = new ArrayList<>();
  private Probe kept; // to be forwarded when the rank that is waited for has read the last, or null
  private final BitSet unread = new BitSet();
  private long lastId;
  private boolean closed;

  public DeadlockDetector(
      GroupTransport job,
      Function<GroupKey, LongWait> waits,
      Set<Long> callers,
      JobLiveness liveness) {
    this.probes = new Mailbox(job, Channel.PROBE, Probe.BYTES);
    this.waits = waits;
    this.callers = callers;
    this.liveness = liveness;
    this.rank = job.rank();
    this.ranks = job.size();
  }

  synchronized void leave(LongWait ended) {
    ended.id = 0;
    ended.probedAt = 0;
    ended.suspected = null;
  }

  /**
   * Called repeatedly by a thread that has waited long for a rank to reach a call. Returns the
   * cycle that this wait is part of, or depends on; or null.
   */
  synchronized Probe look(LongWait pending) {
    if (closed) {
      return null;
    }
    pending.id = pending.id == 0 ? ++lastId : pending.id;
    readProbes();
    if (kept != null) {
      asked.add(kept);
      kept = null;
    }
    for (Probe probe : List.copyOf(asked)) {
      LongWait here = waits.apply(probe.last().group());
      if (here == pending || here == null || here.id == 0) { // no other thread waits there
        asked.remove(probe);
        forward(probe, here, pending);
      }
    }
    long now = pending.clock.waited();
    if (now - pending.probedAt > PROBE_NANOS && mayAsk(pending)) {
      pending.probedAt = now;
      ask(new Probe(Probe.Kind.ASK, pending.group.key()), pending);
    }
    Probe cycle = pending.found;
    pending.found = null;
    return cycle;
  }

  private void readProbes() {
    try {
      for (ByteBuffer next = probes.next(); next != null; next = probes.next()) {
        Probe probe = Probe.decode(next, ranks);
        if (probe != null && probe.kind == Probe.Kind.ASK) {
          asked.add(probe);
          send(new Probe(Probe.Kind.READ, probe.group), probe.sender);
        } else if (probe != null && probe.kind == Probe.Kind.READ) {
          unread.clear(probe.sender);
        } else if (probe != null) {
          tell(waits.apply(probe.group), probe);
        }
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot receive probes", rank, e); // one may have died
    }
  }

  private void forward(Probe probe, LongWait here, LongWait pending) {
    Probe.Wait last = probe.last();
    if (here == null
        || here != pending && callers.size() > 1
        || here.group.arrivals().hasReached(last.phase(), last.number(), last.waiting())
        || !pending.isWaiting()) {
      return;
    }
    int own = probe.indexOf(rank);
    if (own >= 0 && probe.waits.get(own).id() == pending.id) {
      closeCycle(new Probe(Probe.Kind.ASK, probe.group, probe, own), pending);
    } else if (own < 0 && probe.passed < 2L * ranks) {
      if (mayAsk(pending)) {
        ask(probe, pending);
      } else if (kept == null || kept.passed < probe.passed) {
        kept = probe;
      }
    }
  }

  private boolean mayAsk(LongWait pending) {
    return !unread.get(pending.awaited())
        && !pending.group.liveness().isUnreachable(pending.peer());
  }

  /** Adds a wait to a chain, and sends it to the rank that is waited for. */
  private void ask(Probe probe, LongWait pending) {
    if (probe.passed == ranks) {
      probe.restart();
    }
    probe.add(pending.toSend(rank));
    unread.set(pending.awaited(), send(probe, pending.awaited()));
  }

  private void closeCycle(Probe cycle, LongWait pending) {
    long now = pending.clock.waited();
    if (pending.suspected == null || !pending.suspected.isSameCycle(cycle)) {
      pending.suspected = cycle;
      pending.suspectedAt = now;
    }
    if (!cycle.isOfOneGroup() && now - pending.suspectedAt <= pending.timeouts().lateNanos()) {
      return; // another thread may still make one of the calls
    }
    tell(pending, cycle);
    for (Probe.Wait wait : cycle.waits) {
      if (!wait.group().equals(pending.group.key())) {
        send(new Probe(Probe.Kind.FOUND, wait.group(), cycle, 0), wait.waiting());
      }
    }
  }

  /** Tells an open group of a cycle. Its other ranks learn of the first one, and pass it on. */
  private void tell(LongWait wait, Probe cycle) {
    if (wait == null) {
      return;
    }
    wait.found = cycle;
    GroupParts group = wait.group;
    if (!wait.told) {
      wait.told = true;
      Probe notice = new Probe(Probe.Kind.FOUND, group.key(), cycle, 0);
      for (int peer : group.ranks().neighbours()) {
        if (!group.liveness().isUnreachable(peer)) {
          send(notice, group.ranks().worldRank(peer));
        }
      }
    }
  }

  /** Skips ranks that are gone: sending to them can make MPI end this process. */
  private boolean send(Probe probe, int to) {
    if (closed || liveness.isGone(to)) {
      return false;
    }
    try {
      probes.send(probe.encode(rank), to);
      return true;
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot send to rank {}", rank, to, e);
      return false;
    }
  }

  /** Sends nothing from now on. Receives what has arrived, as MPI_Finalize requires. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      readProbes();
      Resources.closeAll(probes);
    }
  }
}

package org.gradientsync.collective;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds ranks that wait for each other, so that none of them can ever go on: one sends and another
 * is in a barrier, say.
 *
 * <p>A rank that has waited long sends a probe to the rank that it waits for. Who receives one, and
 * waits itself, adds its own wait and sends it on. A probe that comes back to where it began has
 * found a circle. A rank adds its wait only if it has not come to the call that the one before it
 * waits for; while it waits it cannot come, so when the circle closes all of its waits still hold.
 * (K. M. Chandy, J. Misra, L. M. Haas: Distributed Deadlock Detection. ACM Transactions on Computer
 * Systems 1(2), 1983; with one rank waited for at a time.)
 *
 * <p>That holds in one communicator, whose lock the waiting thread has. If the waits are in several
 * communicators, another thread may be about to make the call that is waited for. They are looked
 * at only for ranks of which one thread alone has ever made calls, and it takes longer until that
 * is held to be a circle.
 *
 * <p>Each rank has at most one probe under way to each other, so one that never waits does not find
 * a heap of them. Nothing is sent before a wait has become long.
 */
final class StandOff implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(StandOff.class);
  private static final long PROBE_NANOS = 300_000_000;

  private final Transport transport;
  private final Contexts contexts;
  private final int rank;
  private final Set<Stance> waits = new LinkedHashSet<>();
  private final List<Probe> asked = new ArrayList<>();
  private final Map<Key, Probe> found = new HashMap<>();
  private final BitSet unread = new BitSet();
  private final Message[] receives; // null until a wait has become long
  private final Probe[] incoming;
  private long lastId;

  /** A communicator, as all its ranks know it. */
  record Key(long context, long generation) {}

  StandOff(Transport transport, Contexts contexts) {
    this.transport = transport;
    this.contexts = contexts;
    this.rank = transport.rank();
    this.receives = new Message[transport.size()];
    this.incoming = new Probe[receives.length];
  }

  /** A number for a wait. */
  synchronized long newId() {
    return ++lastId;
  }

  /** Notes that a wait is over. */
  synchronized void leave(Stance stance) {
    waits.remove(stance);
  }

  /**
   * Called again and again by a thread whose wait has become long.
   *
   * @return the circle that this wait is part of, or waits for; or null
   */
  synchronized Probe look(Stance stance) {
    waits.add(stance);
    read();
    for (Probe probe : List.copyOf(asked)) {
      if (!isForAnother(probe, stance)) {
        asked.remove(probe);
        pass(probe, stance);
      }
    }
    Key key = stance.group.key();
    long now = System.nanoTime();
    if (!found.containsKey(key) && now - stance.probedAt > PROBE_NANOS) {
      stance.probedAt = now;
      passOn(Probe.of(Probe.Kind.ASK), stance);
    }
    return found.remove(key);
  }

  /** Takes what has come. */
  private void read() {
    for (int peer = 0; peer < receives.length; peer++) {
      try {
        if (peer != rank && receives[peer] == null) {
          incoming[peer] = Probe.of(Probe.Kind.READ);
          receives[peer] = transport.receiver(incoming[peer].memory(), peer, Group.PROBE);
          receives[peer].start();
        }
        if (peer != rank && receives[peer].test()) {
          take(incoming[peer], peer);
          receives[peer].start();
        }
      } catch (GradientSyncException e) {
        log.debug("rank {} cannot hear rank {}", rank, peer, e); // it has died, say
      }
    }
  }

  private void take(Probe probe, int from) {
    Probe.Kind kind = probe.kind(receives.length);
    if (kind == Probe.Kind.ASK) {
      asked.add(probe.copy(kind));
      send(Probe.of(Probe.Kind.READ), from);
    } else if (kind == Probe.Kind.READ) {
      unread.clear(from);
    } else if (kind == Probe.Kind.FOUND) {
      boolean isNew = found.put(probe.group(), probe.copy(kind)) == null;
      int own = probe.indexOf(rank);
      if (isNew && own > 0 && !probe.group(own).equals(probe.group(0))) {
        tell(contexts.find(probe.group()), probe); // whom the finder does not know
      }
    }
  }

  /** Whether another thread waits in the call that a probe is about. */
  private boolean isForAnother(Probe probe, Stance stance) {
    Key key = probe.group(probe.length() - 1);
    return !key.equals(stance.group.key())
        && waits.stream().anyMatch(other -> other.group.key().equals(key));
  }

  /** What becomes of a probe that asks for this rank, which waits. */
  private void pass(Probe probe, Stance stance) {
    int last = probe.length() - 1;
    Group group = contexts.find(probe.group(last));
    if (group == null
        || group != stance.group && !contexts.haveOneCaller()
        || group.hasComeTo(probe.phase(last), probe.number(last), probe.waiting(last))
        || !stance.isForACall()) {
      return;
    }
    if (probe.indexOf(rank) < 0) {
      passOn(probe, stance);
    } else if (probe.waiting(0) == rank && probe.id(0) == stance.id) {
      close(probe, stance);
    }
  }

  private void passOn(Probe probe, Stance stance) {
    int to = stance.awaited();
    if (stance.phase != Stance.Phase.DATA
        && !probe.isFull()
        && !unread.get(to)
        && !stance.group.isDeaf(stance.peer)) {
      probe.add(rank, stance);
      unread.set(to);
      send(probe, to);
    }
  }

  /** The circle is closed. */
  private void close(Probe probe, Stance stance) {
    boolean certain = probe.isOfOneGroup();
    if (certain || System.nanoTime() - stance.since > stance.group.patience().lateNanos()) {
      Probe circle = probe.copy(Probe.Kind.FOUND);
      tell(stance.group, circle);
      for (int i = 1; i < circle.length(); i++) {
        if (!circle.group(i).equals(stance.group.key())) {
          circle.setGroup(circle.group(i));
          send(circle.copy(Probe.Kind.FOUND), circle.waiting(i));
        }
      }
      found.put(stance.group.key(), circle);
    } else if (!stance.warned) {
      stance.warned = true;
      log.warn(
          "{}\n  unless another thread makes one of these calls, they all end after {}",
          stance.group.standOffText(probe),
          stance.group.patience().late());
    }
  }

  /** Tells all ranks of a group, or none. */
  private void tell(Group group, Probe circle) {
    if (group != null) {
      circle.setGroup(group.key());
      for (int peer = 0; peer < group.size(); peer++) {
        if (peer != group.rank() && !group.isDeaf(peer)) {
          send(circle.copy(Probe.Kind.FOUND), group.worldRank(peer));
        }
      }
    }
  }

  private void send(Probe probe, int to) {
    try {
      Message message = transport.sender(probe.memory(), to, Group.PROBE);
      message.start();
      message.close();
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot send to rank {}", rank, to, e);
    }
  }

  @Override
  public synchronized void close() {
    for (Message receive : receives) {
      if (receive != null) {
        receive.close();
      }
    }
  }
}

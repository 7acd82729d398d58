package org.gradientsync.core.diagnosis;

import java.nio.ByteBuffer;
import java.util.Locale;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.core.rendezvous.Link;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Timeouts;

/**
 * A wait of a rank for another rank that is no longer short. A group has one object for all of
 * them, because one thread at a time waits. Allocates nothing after construction.
 */
public final class LongWait {
  final GroupParts group;
  private final DeadlockDetector detector;
  final WaitClock clock = new WaitClock();
  private Message message;
  private volatile int peer = RankMap.NO_RANK; // or none
  private volatile long since;
  private WaitPhase phase;
  private Timeouts timeouts;

  // For the deadlock detector:
  long number;
  long id; // unique among the waits of this rank; 0 before the detector has looked
  long probedAt; // by the clock
  Probe suspected; // or null
  long suspectedAt;
  Probe found; // a cycle that the group's ranks are told of; or null
  boolean told; // whether the group's ranks were told of the first cycle

  public LongWait(GroupParts group, DeadlockDetector detector) {
    this.group = group;
    this.detector = detector;
  }

  /** The number is that of the collective, or the stages of a {@link Link}. */
  public void begin(
      Message newMessage, int newPeer, WaitPhase newPhase, long newNumber, Timeouts newTimeouts) {
    message = newMessage;
    phase = newPhase;
    number = newNumber;
    timeouts = newTimeouts;
    clock.restart();
    since = System.nanoTime();
    peer = newPeer;
  }

  public void end() {
    peer = RankMap.NO_RANK;
    if (id != 0) {
      detector.leave(this);
    }
  }

  /** The cycle of waits that this one is part of, or depends on; or null. */
  public Probe findCycle() {
    return detector.look(this);
  }

  public WaitClock clock() {
    return clock;
  }

  public Message message() {
    return message;
  }

  public int peer() {
    return peer;
  }

  public WaitPhase phase() {
    return phase;
  }

  public Timeouts timeouts() {
    return timeouts;
  }

  /** Which rank this one waits for since when, or an empty text. Any thread may call this. */
  public String state() {
    int awaited = peer;
    if (awaited == RankMap.NO_RANK) {
      return "";
    }
    double seconds = (System.nanoTime() - since) / 1e9;
    String now = group.calls().current();
    return String.format(
        Locale.ROOT, "waits for rank %d since %.1f s in %s", awaited, seconds, now);
  }

  boolean isWaiting() {
    try {
      return !message.test();
    } catch (GradientSyncException e) {
      return false; // the waiting thread will see the same exception
    }
  }

  int awaited() {
    return group.ranks().worldRank(peer);
  }

  Probe.Wait toSend(int rank) {
    ByteBuffer own = group.calls().currentBytes();
    ByteBuffer call = CallRecord.allocate().put(0, own, 0, CallRecord.BYTES);
    return new Probe.Wait(rank, awaited(), group.key(), phase, number, id, call);
  }
}

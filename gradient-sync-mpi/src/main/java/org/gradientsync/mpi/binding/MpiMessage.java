package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import org.gradientsync.RankLostException;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** A message over a persistent request. Starting and testing it allocate nothing. */
public final class MpiMessage implements Message {
  /** How often closing tests an active message, so that a short one is still sent. */
  private static final int LAST_TESTS = 100;

  /**
   * The memory of messages that were closed while active. MPI may still use it, so it must not be
   * garbage collected. This is rare, because short messages are sent at once.
   */
  private static final Deque<ByteBuffer> UNFINISHED = new ArrayDeque<>();

  private final Object lock;
  private final MpiCalls mpi;
  private final LostRanks lost;
  private final MpiRequest request;
  private final ByteBuffer memory; // MPI uses it, so it must stay reachable as long as the request
  private final int peer;
  private final boolean sends;
  private boolean active;
  private boolean broken; // the peer has died, and MPI has freed the request
  private boolean closed;

  MpiMessage(
      Object lock,
      MpiCalls mpi,
      LostRanks lost,
      MpiRequest request,
      ByteBuffer memory,
      int peer,
      boolean sends) {
    this.lock = lock;
    this.mpi = mpi;
    this.lost = lost;
    this.request = request;
    this.memory = memory;
    this.peer = peer;
    this.sends = sends;
  }

  @Override
  public void start() {
    synchronized (lock) {
      if (closed) {
        throw new IllegalStateException("message is closed: peer=" + peer);
      }
      if (active) {
        throw new IllegalStateException("message has been started already: peer=" + peer);
      }
      try {
        if (!broken) { // otherwise the test throws
          request.start();
          active = true;
        }
      } catch (MpiFailure e) {
        throw MpiJob.failed("start", e);
      }
    }
  }

  @Override
  public boolean test() {
    if (!active && !broken) {
      return true;
    }
    synchronized (lock) {
      try {
        advance();
        if (broken) {
          throw new RankLostException("MPI reports the death of rank " + peer + " of the job");
        }
        return !active;
      } catch (MpiFailure e) {
        active = false;
        String other = peer == Transport.ANY_RANK ? "any rank" : "rank " + peer;
        throw MpiJob.failed((sends ? "send to " : "receive from ") + other, e);
      }
    }
  }

  /** Tests an active request, and takes note if its peer has died. */
  private void advance() throws MpiFailure {
    try {
      active = active && !request.test();
    } catch (MpiFailure e) {
      if (!lost.caused(e)) {
        throw e;
      }
      broken = LostRanks.isOver(e);
      active = !broken;
      lost.acknowledge();
    }
  }

  @Override
  public void close() {
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      try {
        if (mpi.isFinalized()) {
          return;
        }
        if (active && !sends) {
          request.cancel(); // does nothing if the other rank's message has arrived
        }
        for (int i = 0; i < LAST_TESTS && active; i++) {
          advance();
        }
        if (!broken) {
          request.free();
        }
        if (active) {
          UNFINISHED.add(memory); // all messages have the same lock
        }
      } catch (MpiFailure e) {
        throw MpiJob.failed("free", e);
      }
    }
  }
}

package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
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
  private final MpiRequest request;
  private final ByteBuffer memory; // MPI uses it, so it must stay reachable as long as the request
  private final int peer;
  private final boolean sends;
  private boolean active;
  private boolean closed;

  MpiMessage(
      Object lock, MpiCalls mpi, MpiRequest request, ByteBuffer memory, int peer, boolean sends) {
    this.lock = lock;
    this.mpi = mpi;
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
        request.start();
        active = true;
      } catch (MpiFailure e) {
        throw MpiJob.failed("start", e);
      }
    }
  }

  @Override
  public boolean test() {
    if (!active) {
      return true;
    }
    synchronized (lock) {
      try {
        active = active && !request.test();
        return !active;
      } catch (MpiFailure e) {
        active = false;
        String other = peer == Transport.ANY_RANK ? "any rank" : "rank " + peer;
        throw MpiJob.failed((sends ? "send to " : "receive from ") + other, e);
      }
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
          active = !request.test();
        }
        request.free();
        if (active) {
          UNFINISHED.add(memory); // all messages have the same lock
        }
      } catch (MpiFailure e) {
        throw MpiJob.failed("free", e);
      }
    }
  }
}

package org.gradientsync.tcp;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.gradientsync.UnavailableException;

/**
 * Makes connections to other ranks when messages need them. If two ranks connect to each other at
 * once, the attempt of the lower one counts. Any thread may call it.
 */
final class Connector implements AutoCloseable {
  private static final int THREADS = 8;

  /** Begins why a rank is lost to which no connection can be made. */
  static final String UNREACHED = "it cannot be reached at ";

  private static final long FIRST_PAUSE_MILLIS = 20;
  private static final long MAX_PAUSE_MILLIS = 500;
  private static final int REFUSALS = 6; // a rank listens from its start to its end

  private final int rank;
  private final Member[] members;
  private final byte[] job;
  private final Handshake handshake;
  private final OutgoingHandshake outgoing;
  private final Endpoint endpoint;
  private final long limitNanos;
  private final boolean[] asked; // until connected or given up
  private final boolean[] attempting; // has said hello, perhaps
  private final int[] accepting; // connections that were admitted
  private final ThreadPoolExecutor threads;

  /**
   * @param from the address to connect from, or null
   * @param limitNanos how long to try
   */
  Connector(
      int rank,
      Member[] members,
      byte[] job,
      Handshake handshake,
      InetAddress from,
      Endpoint endpoint,
      long limitNanos) {
    this.rank = rank;
    this.members = members;
    this.job = job;
    this.handshake = handshake;
    this.endpoint = endpoint;
    this.limitNanos = limitNanos;
    int millis = (int) Math.min(OutgoingHandshake.MILLIS, Math.max(1, limitNanos / 1_000_000));
    outgoing = new OutgoingHandshake(handshake, from, millis);
    asked = new boolean[members.length];
    attempting = new boolean[members.length];
    accepting = new int[members.length];
    threads =
        new ThreadPoolExecutor(
            THREADS,
            THREADS,
            5,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, "gradient-sync-tcp-connect-" + rank);
              thread.setDaemon(true);
              return thread;
            });
    threads.allowCoreThreadTimeOut(true);
  }

  /** Asks for a connection. Returns at once. */
  void connect(int peer) {
    synchronized (this) {
      if (asked[peer] || threads.isShutdown()) {
        return;
      }
      asked[peer] = true;
    }
    threads.execute(() -> attempt(peer));
  }

  private void attempt(int peer) {
    long start = System.nanoTime();
    long pause = FIRST_PAUSE_MILLIS;
    int refusals = 0;
    String why = "";
    try {
      while (!endpoint.isConnected(peer)) {
        if (refusals == REFUSALS || System.nanoTime() - start > limitNanos) {
          endpoint.lose(
              peer, UNREACHED + members[peer].address() + ": " + why, refusals < REFUSALS);
          return;
        }
        try {
          if (begin(peer)) {
            try {
              if (endpoint.isConnected(peer)) {
                return; // since begin none is accepted, so that this answer stays true
              }
              SocketChannel channel = outgoing.connect(members[peer].address(), hello(peer));
              take(peer, channel);
            } finally {
              end(peer);
            }
          }
        } catch (UnavailableException e) {
          endpoint.lose(peer, e.getMessage(), false);
          return;
        } catch (IOException e) {
          why =
              Descriptors.areExhausted(e) ? Descriptors.text(rank) : String.valueOf(e.getMessage());
          refusals = e instanceof ConnectException ? refusals + 1 : 0;
        }
        if (!endpoint.isConnected(peer)) {
          Thread.sleep(pause);
          pause = Math.min(2 * pause, MAX_PAUSE_MILLIS);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // the job is over
    } catch (OutOfMemoryError e) { // of direct memory
      endpoint.lose(peer, "there is no memory for a connection to it: " + e.getMessage(), false);
    } finally {
      synchronized (this) {
        asked[peer] = false;
      }
    }
  }

  private Handshake.Hello hello(int peer) {
    byte[] nonce = Handshake.random(Handshake.NONCE);
    return new Handshake.Hello(false, false, rank, members.length, peer, job, nonce);
  }

  private synchronized boolean begin(int peer) {
    attempting[peer] = accepting[peer] == 0;
    return attempting[peer];
  }

  private synchronized void end(int peer) {
    attempting[peer] = false;
  }

  private void take(int peer, SocketChannel channel) throws IOException {
    channel.configureBlocking(false);
    if (!endpoint.attach(peer, channel)) {
      Listener.close(channel);
    }
  }

  /** What to answer to another rank that connects. */
  int admit(Handshake.Hello hello) {
    int peer = hello.rank();
    boolean known =
        !hello.register()
            && peer < members.length
            && peer != rank
            && hello.target() == rank
            && Handshake.same(hello.job(), job);
    if (!known) {
      return Handshake.OTHER_JOB;
    }
    synchronized (this) {
      if (attempting[peer] && rank < peer) {
        return Handshake.CROSSED;
      }
      accepting[peer]++;
    }
    if (endpoint.isConnected(peer)) { // asked last, because an attempt may just have succeeded
      endAccepting(peer);
      return Handshake.CROSSED;
    }
    return Handshake.OK;
  }

  /** Takes over a connection that was admitted. */
  void accepted(int peer, SocketChannel channel) {
    if (!endpoint.attach(peer, channel)) {
      Listener.close(channel);
    }
    endAccepting(peer);
  }

  /** A connection that was admitted is attached, or has ended before. */
  synchronized void endAccepting(int peer) {
    accepting[peer]--;
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }
}

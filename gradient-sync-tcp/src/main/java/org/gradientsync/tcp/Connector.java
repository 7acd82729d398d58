package org.gradientsync.tcp;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.gradientsync.UnavailableException;

/**
 * Makes connections to other ranks when messages need them. If two ranks connect to each other at
 * once, the attempt of the lower one counts. Any thread may call it.
 */
final class Connector implements AutoCloseable {
  private static final int THREADS = 8;
  private static final int CONNECT_MILLIS = 2_000; // other ranks wait for the thread

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
  private final ScheduledThreadPoolExecutor threads;

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
        new ScheduledThreadPoolExecutor(
            THREADS,
            task -> {
              Thread thread = new Thread(task, "gradient-sync-tcp-connect-" + rank);
              thread.setDaemon(true);
              return thread;
            });
    threads.setKeepAliveTime(5, TimeUnit.SECONDS);
    threads.allowCoreThreadTimeOut(true);
  }

  /** Asks for a connection. Returns at once. */
  synchronized void connect(int peer) {
    if (!asked[peer] && !threads.isShutdown()) {
      asked[peer] = true;
      threads.execute(new Attempt(peer));
    }
  }

  /**
   * Connects to a rank. After a try that fails, the next one waits behind those for other ranks.
   */
  private final class Attempt implements Runnable {
    private final int peer;
    private long start; // of the first try, or 0
    private long pause = FIRST_PAUSE_MILLIS;
    private int refusals;
    private String why = "";

    Attempt(int peer) {
      this.peer = peer;
    }

    @Override
    public void run() {
      boolean over = true;
      try {
        over = tryOnce();
      } catch (UnavailableException e) {
        endpoint.lose(peer, e.getMessage(), false);
      } catch (OutOfMemoryError e) { // of direct memory
        endpoint.lose(peer, "there is no memory for a connection to it: " + e.getMessage(), false);
      } catch (RuntimeException | Error e) {
        endpoint.lose(peer, "connecting to it has failed: " + e, false);
      } finally {
        goOn(over);
      }
    }

    /** Returns whether there is a connection, or will be none. */
    private boolean tryOnce() {
      if (endpoint.isConnected(peer)) {
        return true;
      }
      start = start == 0 ? System.nanoTime() : start;
      long leftMillis = (limitNanos - (System.nanoTime() - start)) / 1_000_000;
      if (refusals == REFUSALS || leftMillis <= 0) {
        endpoint.lose(peer, UNREACHED + members[peer].address() + ": " + why, refusals < REFUSALS);
        return true;
      }
      try {
        if (begin(peer)) {
          connect((int) Math.min(leftMillis, CONNECT_MILLIS));
        } else {
          why = "it has begun a connection to this rank, and does not go on";
        }
      } catch (IOException e) {
        why = Descriptors.areExhausted(e) ? Descriptors.text(rank) : String.valueOf(e.getMessage());
        refusals = e instanceof ConnectException ? refusals + 1 : 0;
      } finally {
        end(peer);
      }
      return endpoint.isConnected(peer);
    }

    private void connect(int millis) throws IOException {
      if (!endpoint.isConnected(peer)) { // one that comes after begin is settled by crossing
        take(peer, outgoing.connect(members[peer].address(), hello(peer), millis));
      }
    }

    private void goOn(boolean over) {
      long now = pause;
      pause = Math.min(2 * pause, MAX_PAUSE_MILLIS);
      synchronized (Connector.this) {
        asked[peer] = !over;
        if (!over && !threads.isShutdown()) {
          threads.schedule(this, now, TimeUnit.MILLISECONDS);
        }
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
  public synchronized void close() {
    threads.shutdownNow();
  }
}

package org.gradientsync.tcp;

import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import org.gradientsync.spi.Transport;

/**
 * This rank's end of all connections. Its monitor is the one lock of all messages. Whoever starts
 * or tests a message advances the others, too.
 */
final class Endpoint {
  /** Every so many tests of one peer's messages, those of the others advance. */
  private static final int SWEEP_CALLS = 16;

  private static final long SWEEP_NANOS = 20_000; // for those that wait for any rank

  /** What a job's frames do. */
  interface JobFrames {
    /** Returns whether the frame may come from the rank. */
    boolean arrived(int rank, int type, int value);
  }

  private final Peer[] peers; // null at this rank
  private final Unexpected.Pool pool = new Unexpected.Pool();
  private final MessageQueue<ReceiveMessage> any = new MessageQueue<>();
  private IntConsumer connector = peer -> {};
  private JobFrames job = (peer, type, value) -> false;
  private int calls;
  private int firstAsked; // so that each peer is the first one at times
  private long swept = System.nanoTime();
  private volatile boolean progressing;
  private volatile int progressed; // changes with each sweep
  private boolean closed;

  Endpoint(int rank, int size) {
    peers = new Peer[size];
    for (int i = 0; i < size; i++) {
      peers[i] = i == rank ? null : new Peer(this, i);
    }
  }

  synchronized void setConnector(IntConsumer newConnector) {
    connector = newConnector;
  }

  synchronized void setJobFrames(JobFrames newJob) {
    job = newJob;
  }

  Peer peer(int rank) {
    Peer peer = rank >= 0 && rank < peers.length ? peers[rank] : null;
    if (peer == null) {
      throw new IllegalArgumentException("not another rank: peer=" + rank);
    }
    return peer;
  }

  SendMessage sender(ByteBuffer memory, int peer, int tag) {
    requireTag(tag);
    return new SendMessage(this, peer(peer), memory, tag);
  }

  ReceiveMessage receiver(ByteBuffer memory, int peer, int tag) {
    requireTag(tag);
    Peer from = peer == Transport.ANY_RANK ? null : peer(peer);
    return new ReceiveMessage(this, from, memory, tag);
  }

  private static void requireTag(int tag) {
    if (tag < 0 || tag > Transport.MAX_TAG) {
      throw new IllegalArgumentException("no tag: tag=" + tag);
    }
  }

  /**
   * Gives a peer its connection. Returns false if it has one, or has left: the caller closes the
   * channel.
   */
  synchronized boolean attach(int rank, SocketChannel channel) {
    Peer peer = peers[rank];
    if (closed && !peer.hasOutput() || peer.isConnected() || !peer.isOpen()) {
      return false;
    }
    peer.attach(channel);
    return true;
  }

  synchronized boolean isConnected(int rank) {
    return peers[rank].isConnected() || !peers[rank].isOpen();
  }

  /** Gives up a peer that cannot be connected. */
  synchronized void lose(int rank, String why, boolean mayLive) {
    if (!peers[rank].isConnected()) {
      peers[rank].lose(why, mayLive);
    }
  }

  void connect(Peer peer) {
    connector.accept(peer.rank());
  }

  Unexpected.Pool pool() {
    return pool;
  }

  boolean jobFrame(Peer peer, int type, int value) {
    return job.arrived(peer.rank(), type, value);
  }

  /** Adds a frame of the job, to be sent with the next progress. */
  synchronized void tell(int rank, int type, int value) {
    peers[rank].tell(type, value);
  }

  /**
   * Advances all messages, those of one peer first. If another thread does so now, this one leaves
   * it to that.
   *
   * @param first null for messages of any rank
   */
  void progress(Peer first) {
    if (progressing) {
      return;
    }
    synchronized (this) {
      progressing = true;
      try {
        if (first != null) {
          first.advance();
        }
        boolean all = ++calls % SWEEP_CALLS == 0;
        if (all || first == null) {
          sweep(all);
        }
      } finally {
        progressing = false;
      }
    }
  }

  private void sweep(boolean now) {
    long time = System.nanoTime();
    if (now || time - swept > SWEEP_NANOS) {
      swept = time;
      advanceAll();
    }
  }

  private void advanceAll() {
    progressed++;
    for (Peer peer : peers) {
      if (peer != null) {
        peer.advance();
      }
    }
  }

  /** Changes whenever a thread has advanced all messages. Takes no lock. */
  int progressed() {
    return progressed;
  }

  /** Advances all messages if nobody else has since an earlier look. */
  void help(int seen) {
    if (progressed == seen && !progressing) {
      synchronized (this) {
        advanceAll();
      }
    }
  }

  /** Sends heartbeats to the peers that have to send some; see {@link Peer#beat}. */
  synchronized void beat(long now, long silenceNanos, IntPredicate chosen) {
    for (Peer peer : peers) {
      if (peer != null && chosen.test(peer.rank())) {
        peer.beat(now, silenceNanos);
      }
    }
  }

  /** Whether messages wait for something other than the program. */
  synchronized boolean isBusy() {
    for (Peer peer : peers) {
      if (peer != null && peer.isBusy()) {
        return true;
      }
    }
    return false;
  }

  /** Whether something waits to be written. */
  synchronized boolean hasOutput() {
    for (Peer peer : peers) {
      if (peer != null && peer.hasOutput()) {
        return true;
      }
    }
    return false;
  }

  /** Whether no other rank is connected. */
  synchronized boolean areAllGone() {
    for (Peer peer : peers) {
      if (peer != null && (peer.isConnected() || peer.hasOutput())) {
        return false;
      }
    }
    return true;
  }

  void receiveFromAny(ReceiveMessage receiver) {
    for (int i = 0; i < peers.length; i++) {
      Peer peer = peers[(firstAsked + i) % peers.length];
      if (peer != null && peer.takeUnexpected(receiver)) {
        firstAsked = peer.rank() + 1;
        return;
      }
    }
    any.add(receiver);
  }

  ReceiveMessage takeAny(int tag) {
    return any.take(tag);
  }

  void unpost(ReceiveMessage receiver) {
    any.remove(receiver);
  }

  void repost(ReceiveMessage receiver) {
    any.addFirst(receiver);
  }

  /** Says goodbye to all. What waits is still written by {@link #help}. */
  synchronized void close() {
    closed = true;
    for (Peer peer : peers) {
      if (peer != null) {
        peer.leave();
      }
    }
  }

  /** Closes the connections. */
  synchronized void closeLinks() {
    for (Peer peer : peers) {
      if (peer != null) {
        peer.lose("this rank has left", false);
      }
    }
  }
}

package org.gradientsync.tcp;

import java.nio.ByteBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.spi.Message;

/** What sends and receives share. Guarded by the endpoint's lock, except {@link #done}. */
abstract class TcpMessage<M extends TcpMessage<M>> implements Message {
  final Endpoint endpoint;
  final int tag;
  ByteBuffer view; // of the caller's memory, with a position and limit of its own
  M next; // in the queue that the message is in
  volatile boolean done = true;
  String failure; // or null
  boolean closed;

  TcpMessage(Endpoint endpoint, ByteBuffer memory, int tag) {
    if (!memory.isDirect()) {
      throw new IllegalArgumentException("memory is not direct: tag=" + tag);
    }
    this.endpoint = endpoint;
    this.tag = tag;
    view = memory.duplicate();
  }

  /** The rank at the other end, or null for a receiver of any rank. */
  abstract Peer peer();

  abstract void begin();

  abstract void cancel();

  @Override
  public final void start() {
    synchronized (endpoint) {
      if (closed) {
        throw new IllegalStateException("message is closed: " + this);
      }
      if (!done) {
        throw new IllegalStateException("message has been started already: " + this);
      }
      done = false;
      failure = null;
      begin();
    }
  }

  @Override
  public final boolean test() {
    if (!done) {
      endpoint.progress(peer());
    }
    if (!done) {
      requirePeer();
      return false;
    }
    if (failure != null) {
      throw new GradientSyncException(failure);
    }
    return true;
  }

  private void requirePeer() {
    Peer peer = peer();
    if (peer != null && peer.isLostForLong()) {
      synchronized (endpoint) {
        cancel();
        done = true;
      }
      throw new RankLostException(peer.whyLost());
    }
  }

  @Override
  public final void close() {
    synchronized (endpoint) {
      if (!closed) {
        closed = true;
        if (!done) {
          cancel();
          done = true;
        }
      }
    }
  }

  @Override
  public String toString() {
    Peer peer = peer();
    return "peer=" + (peer == null ? "any" : peer.rank()) + ", tag=" + tag;
  }
}

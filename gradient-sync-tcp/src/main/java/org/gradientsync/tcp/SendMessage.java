package org.gradientsync.tcp;

import java.nio.ByteBuffer;

/** A message to a peer. Guarded by the endpoint's lock. */
final class SendMessage extends TcpMessage<SendMessage> {
  private static final int NONE = -1;

  private final Peer peer;
  private final int length;
  private int sent;
  private int id; // this rank's number for it
  private int remoteId; // the receiver's number for it

  SendMessage(Endpoint endpoint, Peer peer, ByteBuffer memory, int tag) {
    super(endpoint, memory, tag);
    this.peer = peer;
    length = memory.capacity();
  }

  /** Copies the content, so that the caller's memory is free. */
  void detach() {
    view = ByteBuffer.allocateDirect(view.capacity()).put(0, view, 0, view.capacity());
  }

  @Override
  Peer peer() {
    return peer;
  }

  int length() {
    return length;
  }

  int left() {
    return length - sent;
  }

  int id() {
    return id;
  }

  int remoteId() {
    return remoteId;
  }

  void announced(int number) {
    id = number;
    remoteId = NONE;
    sent = 0;
  }

  /** Returns false if it was granted before. */
  boolean granted(int number) {
    boolean first = remoteId == NONE;
    remoteId = number;
    return first;
  }

  /** The next bytes. */
  ByteBuffer piece(int bytes) {
    view.limit(sent + bytes).position(sent);
    sent += bytes;
    return view;
  }

  /** Gives the content up. */
  void drop() {
    view = null;
  }

  boolean isDropped() {
    return view == null;
  }

  @Override
  void begin() {
    peer.send(this);
  }

  @Override
  void cancel() {
    peer.cancel(this);
  }
}

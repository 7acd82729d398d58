package org.gradientsync.tcp;

import java.nio.ByteBuffer;

/** A message from a peer, or from any. Guarded by the endpoint's lock. */
final class ReceiveMessage extends TcpMessage<ReceiveMessage> {
  private final Peer from; // or null
  private Peer source; // of what is being received, or null

  ReceiveMessage(Endpoint endpoint, Peer from, ByteBuffer memory, int tag) {
    super(endpoint, memory, tag);
    this.from = from;
  }

  @Override
  Peer peer() {
    return from;
  }

  int capacity() {
    return view.capacity();
  }

  /** The memory for a message that has been matched with this one. */
  ByteBuffer memory(Peer sender) {
    source = sender;
    view.clear();
    return view;
  }

  void complete() {
    source = null;
    done = true;
  }

  void tooShort(Peer sender, int length) {
    failure =
        "message is longer than expected: sent=%s, expected=%s, peer=%s, tag=%s"
            .formatted(length, capacity(), sender.rank(), tag);
    complete();
  }

  @Override
  void begin() {
    source = null;
    if (from != null) {
      from.receive(this);
    } else {
      endpoint.receiveFromAny(this);
    }
  }

  @Override
  void cancel() {
    if (source != null) {
      source.cancel(this);
    } else if (from != null) {
      from.unpost(this);
    } else {
      endpoint.unpost(this);
    }
    source = null;
  }

  /** Takes it away from what it has been matched with. */
  void detach() {
    source = null;
  }
}

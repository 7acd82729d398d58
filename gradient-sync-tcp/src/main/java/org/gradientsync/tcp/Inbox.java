package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * What arrives from one peer, and the receivers for it, matched in the order in which both were
 * started. Guarded by the endpoint's lock.
 */
final class Inbox {
  /** A message that arrives in pieces. */
  private static final class Incoming {
    ReceiveMessage receiver; // null if it was closed
    int left;
    int senderId;
    int id;
    Incoming nextFree;
  }

  private final Endpoint endpoint;
  private final Peer peer;
  private final MessageQueue<ReceiveMessage> posted = new MessageQueue<>();
  private final Slots<Incoming> incoming = new Slots<>();
  private Incoming freeIncoming;
  private Unexpected firstUnexpected;
  private Unexpected lastUnexpected;
  private int consumed; // of the peer's window, and not yet returned
  private Link link; // null without a connection

  // What is being read: one of these, or none if it is skipped.
  private ReceiveMessage eager;
  private Unexpected early;
  private Incoming piece;
  private int payload;

  Inbox(Endpoint endpoint, Peer peer) {
    this.endpoint = endpoint;
    this.peer = peer;
  }

  void attach(Link newLink) {
    link = newLink;
  }

  /** Whether receivers wait. */
  boolean isBusy() {
    return !posted.isEmpty() || piece != null;
  }

  void post(ReceiveMessage receiver) {
    posted.add(receiver);
  }

  void unpost(ReceiveMessage receiver) {
    posted.remove(receiver);
  }

  /** The connection has ended: what is half received will never be complete. */
  void detach() {
    link = null;
    forgetHalfReceived();
  }

  private void forgetHalfReceived() {
    if (eager != null) {
      repost(eager);
    }
    for (int i = 0; i < incoming.size(); i++) {
      Incoming in = incoming.get(i);
      if (in != null && in.receiver != null) {
        repost(in.receiver);
        in.receiver = null;
      }
    }
    Unexpected before = null;
    for (Unexpected u = firstUnexpected; u != null; u = u.next) {
      if (u.announced || !u.complete) {
        if (u.claimedBy != null) {
          repost(u.claimedBy);
        }
        unlink(before, u);
      } else {
        before = u;
      }
    }
    eager = null;
    early = null;
    piece = null;
  }

  private void repost(ReceiveMessage receiver) {
    receiver.detach();
    if (receiver.peer() == null) {
      endpoint.repost(receiver);
    } else {
      posted.addFirst(receiver);
    }
  }

  /** Receives the oldest message with the tag that has arrived or was announced. */
  boolean takeUnexpected(ReceiveMessage receiver) {
    Unexpected before = null;
    Unexpected found = firstUnexpected;
    while (found != null && (found.tag != receiver.tag || found.claimedBy != null)) {
      before = found;
      found = found.next;
    }
    if (found == null) {
      return false;
    }
    if (found.announced) {
      unlink(before, found);
      grant(found.id, found.length, receiver);
      endpoint.pool().free(found);
      peer.flush();
    } else if (found.complete) {
      unlink(before, found);
      deliver(found, receiver);
    } else {
      found.claimedBy = receiver;
      receiver.memory(peer);
    }
    return true;
  }

  private void deliver(Unexpected arrived, ReceiveMessage receiver) {
    if (arrived.length > receiver.capacity()) {
      receiver.tooShort(peer, arrived.length);
    } else {
      receiver.memory(peer).put(0, arrived.memory, 0, arrived.length);
      receiver.complete();
    }
    consume(arrived.length);
    endpoint.pool().free(arrived);
  }

  /** Takes a receiver away from what it has been matched with. */
  void cancel(ReceiveMessage receiver) {
    if (eager == receiver) {
      eager = null;
      link.skip();
      return;
    }
    for (Unexpected u = firstUnexpected; u != null; u = u.next) {
      if (u.claimedBy == receiver) {
        u.claimedBy = null;
        return;
      }
    }
    for (int i = 0; i < incoming.size(); i++) {
      Incoming in = incoming.get(i);
      if (in != null && in.receiver == receiver) {
        in.receiver = null;
        if (piece == in) {
          link.skip();
        }
      }
    }
  }

  private ReceiveMessage takePosted(int tag) {
    ReceiveMessage receiver = posted.take(tag);
    return receiver != null ? receiver : endpoint.takeAny(tag);
  }

  private void grant(int senderId, int length, ReceiveMessage receiver) {
    if (length > receiver.capacity()) {
      receiver.tooShort(peer, length);
      return;
    }
    Incoming in = freeIncoming;
    if (in == null) {
      in = new Incoming();
    } else {
      freeIncoming = in.nextFree;
    }
    in.receiver = receiver;
    in.left = length;
    in.senderId = senderId;
    in.id = incoming.add(in);
    receiver.memory(peer);
    link.put(Frame.GRANT, in.id, 0, senderId);
  }

  private void free(Incoming in) {
    incoming.free(in.id);
    in.receiver = null;
    in.nextFree = freeIncoming;
    freeIncoming = in;
  }

  /** Returns the memory for an eager message, or null to skip it. */
  ByteBuffer eagerArrives(int tag, int length) throws IOException {
    Outbox.require(length >= 0 && length <= Outbox.EAGER_BYTES);
    payload = length;
    ReceiveMessage receiver = takePosted(tag);
    if (receiver == null) {
      early = endpoint.pool().take(tag, length);
      append(early);
      return early.memory;
    }
    if (length > receiver.capacity()) {
      receiver.tooShort(peer, length);
      return null;
    }
    eager = receiver;
    return receiver.memory(peer);
  }

  /** Returns the memory for a piece, or null to skip it. */
  ByteBuffer pieceArrives(int id, int length) throws IOException {
    Incoming in = incoming.get(id);
    Outbox.require(in != null && length >= 0 && length <= in.left && (length > 0 || in.left == 0));
    piece = in;
    payload = length;
    return in.receiver == null ? null : in.receiver.view;
  }

  void payloadArrived() {
    if (piece != null) {
      Incoming in = piece;
      piece = null;
      in.left -= payload;
      if (in.left == 0) {
        ReceiveMessage receiver = in.receiver;
        free(in);
        if (receiver != null) {
          receiver.complete();
        }
      }
      return;
    }
    if (early != null) {
      Unexpected arrived = early;
      early = null;
      arrived.complete = true;
      if (arrived.claimedBy != null) {
        remove(arrived);
        deliver(arrived, arrived.claimedBy);
      }
      return;
    }
    if (eager != null) {
      ReceiveMessage receiver = eager;
      eager = null;
      receiver.complete();
    }
    consume(payload);
  }

  private void consume(int length) {
    consumed += length + Outbox.ENTRY_BYTES;
    if (consumed >= Outbox.WINDOW_BYTES / 4 && link != null) {
      link.put(Frame.CREDIT, 0, consumed, 0);
      consumed = 0;
    }
  }

  /** The peer has announced a message. */
  void announce(int tag, int length, int id) throws IOException {
    Outbox.require(length >= 0);
    ReceiveMessage receiver = takePosted(tag);
    if (receiver == null) {
      append(endpoint.pool().announced(tag, length, id));
    } else {
      grant(id, length, receiver);
    }
  }

  /** The peer takes an announcement back. */
  void withdraw(int senderId) {
    Unexpected u = firstUnexpected;
    while (u != null && !(u.announced && u.id == senderId)) {
      u = u.next;
    }
    if (u != null) {
      remove(u);
      endpoint.pool().free(u);
      return;
    }
    for (int i = 0; i < incoming.size(); i++) {
      Incoming in = incoming.get(i);
      if (in != null && in.senderId == senderId) {
        ReceiveMessage receiver = in.receiver;
        free(in);
        if (receiver != null) {
          repost(receiver);
        }
        return;
      }
    }
  }

  private void append(Unexpected entry) {
    if (lastUnexpected == null) {
      firstUnexpected = entry;
    } else {
      lastUnexpected.next = entry;
    }
    lastUnexpected = entry;
  }

  private void remove(Unexpected entry) {
    Unexpected before = null;
    for (Unexpected u = firstUnexpected; u != entry; u = u.next) {
      before = u;
    }
    unlink(before, entry);
  }

  private void unlink(Unexpected before, Unexpected entry) {
    if (before == null) {
      firstUnexpected = entry.next;
    } else {
      before.next = entry.next;
    }
    if (lastUnexpected == entry) {
      lastUnexpected = before;
    }
  }
}

package org.gradientsync.tcp;

import java.io.IOException;
import java.net.ProtocolException;

/**
 * The messages to one peer that have been started. Guarded by the endpoint's lock.
 *
 * <p>Messages of up to {@link #EAGER_BYTES} are sent at once, as long as the peer has room for
 * them. Others are announced, and sent when the peer has a receiver for them.
 */
final class Outbox {
  /** The maximum size of a message that is sent before its receiver is known to be there. */
  static final int EAGER_BYTES = 64 << 10;

  /** How many bytes of eager messages the peer holds for receivers that come later. */
  static final int WINDOW_BYTES = 4 << 20; // enough for a slow link, whose credits come late

  /** What a message counts in the window beside its payload. */
  static final int ENTRY_BYTES = 64;

  /** The maximum size of a message that arrives even if it is closed at once. */
  private static final int KEPT_BYTES = 4 << 10;

  private final MessageQueue<SendMessage> waiting = new MessageQueue<>();
  private final MessageQueue<SendMessage> granted = new MessageQueue<>();
  private final Slots<SendMessage> announced = new Slots<>();
  private int window = WINDOW_BYTES;
  private boolean leaving;
  private boolean saidBye;

  void add(SendMessage message) {
    waiting.add(message);
  }

  /** Whether messages wait to be announced. */
  boolean isWaiting() {
    return !waiting.isEmpty();
  }

  /** Whether messages wait to be announced, or to be sent in pieces. */
  boolean hasQueued() {
    return !waiting.isEmpty() || !granted.isEmpty() || leaving && !saidBye;
  }

  /** Says goodbye after what waits. */
  void leave() {
    leaving = true;
  }

  /** Completes what waits, because nobody will receive it. */
  void drop() {
    while (!waiting.isEmpty()) {
      waiting.poll().done = true;
    }
  }

  /** Takes a message back whose peer is gone. */
  void forget(SendMessage message) {
    waiting.remove(message);
    message.drop();
  }

  /** Hands what waits to the link, as far as it has room. */
  void admit(Link to) {
    while (!waiting.isEmpty()) {
      SendMessage message = waiting.peek();
      int length = message.length();
      boolean atOnce = length <= EAGER_BYTES && window >= length + ENTRY_BYTES;
      if (!to.hasRoom(atOnce ? length : 0)) {
        return;
      }
      waiting.poll();
      if (atOnce) {
        window -= length + ENTRY_BYTES;
        to.put(message.tag, message.view);
        message.done = true;
      } else {
        message.announced(announced.add(message));
        to.put(Frame.ANNOUNCE, message.tag, length, message.id());
      }
    }
    if (leaving && !saidBye) {
      saidBye = true;
      to.put(Frame.BYE, 0, 0, 0);
    }
  }

  SendMessage nextGranted() {
    return granted.poll();
  }

  void pieceSent(SendMessage message) {
    if (message.isDropped() || message.left() == 0) {
      announced.free(message.id());
      message.done = true;
    } else {
      granted.add(message);
    }
  }

  /**
   * Takes a message back, or copies it if it arrives nevertheless.
   *
   * @param link null if there is no connection yet
   */
  void cancel(SendMessage message, Link link) {
    boolean kept = message.length() <= KEPT_BYTES; // arrives nevertheless
    if (kept || link != null && link.isSending(message)) {
      if (link != null) {
        link.detach(message);
      }
      if (kept) {
        message.detach();
      } else {
        message.drop();
      }
    } else if (waiting.remove(message)) {
      message.drop();
    } else if (granted.remove(message)) {
      announced.free(message.id());
    } else {
      message.drop();
      link.put(Frame.WITHDRAW, 0, 0, message.id());
    }
  }

  /** The peer asks for an announced message. */
  void grant(int id, int remoteId) throws IOException {
    SendMessage message = announced.get(id);
    require(message != null);
    if (!message.isDropped()) {
      require(message.granted(remoteId));
      granted.add(message);
    }
  }

  /** The peer has forgotten an announcement. */
  void withdrawn(int id) throws IOException {
    SendMessage message = announced.get(id);
    require(message != null && message.isDropped());
    announced.free(id);
  }

  /** The peer has received eager messages. */
  void credit(int bytes) throws IOException {
    require(bytes >= 0 && bytes <= WINDOW_BYTES - window);
    window += bytes;
  }

  /** Throws if the peer has sent what no rank sends. */
  static void require(boolean valid) throws IOException {
    if (!valid) {
      throw new ProtocolException("it has sent what no rank sends");
    }
  }
}

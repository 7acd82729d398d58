package org.gradientsync.tcp;

import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * Another rank of the job: matches what it sends with receivers, in the order in which both were
 * started. Guarded by the endpoint's lock, except where a method states otherwise.
 *
 * <p>Messages of up to {@link #EAGER_BYTES} are sent at once, as long as the peer has room for
 * them. Others are announced, and sent when the peer has a receiver for them.
 */
final class Peer {
  /** The maximum size of a message that is sent before its receiver is known to be there. */
  static final int EAGER_BYTES = 16 << 10;

  /** The maximum size of a message that arrives even if it is closed at once. */
  static final int KEPT_BYTES = 4 << 10;

  /** How many bytes of eager messages the peer holds for receivers that come later. */
  private static final int WINDOW_BYTES = 1 << 20;

  private static final int ENTRY_BYTES = 64; // what a message counts beside its payload
  private static final long GRACE_NANOS = 2_000_000_000L;

  /** A message that arrives in pieces. */
  private static final class Incoming {
    ReceiveMessage receiver; // null if it was closed
    int left;
    int senderId;
    int id;
    Incoming nextFree;
  }

  private final Endpoint endpoint;
  private final int rank;
  private final MessageQueue<ReceiveMessage> posted = new MessageQueue<>();
  private final MessageQueue<SendMessage> waiting = new MessageQueue<>();
  private final MessageQueue<SendMessage> granted = new MessageQueue<>();
  private final Slots<SendMessage> announced = new Slots<>();
  private final Slots<Incoming> incoming = new Slots<>();
  private Incoming freeIncoming;
  private Unexpected firstUnexpected;
  private Unexpected lastUnexpected;
  private int window = WINDOW_BYTES;
  private int consumed; // of the peer's window, and not yet returned

  // What is being read: one of these, or none if it is skipped.
  private ReceiveMessage eager;
  private Unexpected early;
  private Incoming piece;
  private int payload;

  private Link link; // null until there is a connection, and after its end
  private volatile String lost; // why, or null
  private volatile long lostAt;
  private volatile boolean left;
  private boolean leaving;
  private boolean saidBye;

  Peer(Endpoint endpoint, int rank) {
    this.endpoint = endpoint;
    this.rank = rank;
  }

  int rank() {
    return rank;
  }

  boolean isConnected() {
    return link != null;
  }

  /** Whether it is neither connected nor known to be gone. Takes no lock. */
  boolean isOpen() {
    return lost == null && !left;
  }

  /** Whether it has said goodbye. Takes no lock. */
  boolean hasLeft() {
    return left;
  }

  /** Whether its connection has broken without a goodbye. Takes no lock. */
  boolean isLost() {
    return lost != null;
  }

  /** Whether it was lost so long ago that all it has sent before was read. Takes no lock. */
  boolean isLostForLong() {
    return lost != null && System.nanoTime() - lostAt > GRACE_NANOS;
  }

  /** Takes no lock. */
  String whyLost() {
    return lost;
  }

  void attach(SocketChannel channel) {
    link = new Link(this, channel);
    advance();
  }

  /** Whether something waits to be sent, or is half received. */
  boolean isBusy() {
    return isOpen()
        && (hasQueued() || !posted.isEmpty() || piece != null || link != null && link.hasOutput());
  }

  /** Whether something waits to be sent without anybody's help. */
  boolean hasOutput() {
    return isOpen() && (!waiting.isEmpty() || link != null && link.hasOutput());
  }

  /** Writes and reads what it can. */
  void advance() {
    if (link == null) {
      return;
    }
    try {
      if (link.hasOutput()) {
        link.flush();
      }
      link.read();
      if (left) {
        closeLink();
      } else if (link.hasOutput()) {
        link.flush();
      }
    } catch (IOException e) {
      lose("the connection broke: " + e.getMessage());
    }
  }

  private void flush() {
    try {
      if (link != null) {
        link.flush();
      }
    } catch (IOException e) {
      readLast();
      lose("the connection broke: " + e.getMessage());
    }
  }

  /** Reads what the peer has sent before its connection broke. */
  private void readLast() {
    try {
      link.read();
    } catch (IOException e) {
      // that was all
    }
  }

  /** Gives the peer up. */
  void lose(String why) {
    if (lost == null && !left) {
      lostAt = System.nanoTime();
      lost = "rank " + rank + " is lost: " + why;
    }
    closeLink();
  }

  private void closeLink() {
    if (link != null) {
      link.close();
      link = null;
    }
    forgetHalfReceived();
    while (!waiting.isEmpty() && left) {
      waiting.poll().done = true; // nobody will receive it
    }
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

  // Sending.

  void send(SendMessage message) {
    if (left) {
      message.done = true; // nobody will receive it
      return;
    }
    waiting.add(message);
    if (link != null) {
      flush();
    } else if (lost == null) {
      endpoint.connect(this);
    }
  }

  /** Whether messages wait to be announced, or to be sent in pieces. */
  boolean hasQueued() {
    return !waiting.isEmpty() || !granted.isEmpty() || leaving && !saidBye;
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

  void cancel(SendMessage message) {
    boolean kept = message.length() <= KEPT_BYTES; // arrives nevertheless
    if (!isOpen()) {
      waiting.remove(message);
      message.drop();
    } else if (kept || link != null && link.isSending(message)) {
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
      flush();
    }
  }

  /** Says goodbye after what waits. */
  void leave() {
    leaving = true;
    advance();
  }

  // Receiving.

  void receive(ReceiveMessage receiver) {
    if (!takeUnexpected(receiver)) {
      posted.add(receiver);
      if (link == null && isOpen()) {
        endpoint.connect(this); // to learn of its end
      }
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
      flush();
    } else if (found.complete) {
      unlink(before, found);
      deliver(found, receiver);
    } else {
      found.claimedBy = receiver;
      receiver.memory(this);
    }
    return true;
  }

  private void deliver(Unexpected arrived, ReceiveMessage receiver) {
    if (arrived.length > receiver.capacity()) {
      receiver.tooShort(this, arrived.length);
    } else {
      receiver.memory(this).put(0, arrived.memory, 0, arrived.length);
      receiver.complete();
    }
    consume(arrived.length);
    endpoint.pool().free(arrived);
  }

  void unpost(ReceiveMessage receiver) {
    posted.remove(receiver);
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
      receiver.tooShort(this, length);
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
    receiver.memory(this);
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
    require(length >= 0 && length <= EAGER_BYTES);
    payload = length;
    ReceiveMessage receiver = takePosted(tag);
    if (receiver == null) {
      early = endpoint.pool().take(tag, length);
      append(early);
      return early.memory;
    }
    if (length > receiver.capacity()) {
      receiver.tooShort(this, length);
      return null;
    }
    eager = receiver;
    return receiver.memory(this);
  }

  /** Returns the memory for a piece, or null to skip it. */
  ByteBuffer pieceArrives(int id, int length) throws IOException {
    Incoming in = incoming.get(id);
    require(in != null && length >= 0 && length <= in.left && (length > 0 || in.left == 0));
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
    consumed += length + ENTRY_BYTES;
    if (consumed >= WINDOW_BYTES / 4 && link != null) {
      link.put(Frame.CREDIT, 0, consumed, 0);
      consumed = 0;
    }
  }

  /** Handles a frame without payload. */
  void control(int type, int tag, int length, int id) throws IOException {
    switch (type) {
      case Frame.ANNOUNCE -> {
        require(length >= 0);
        ReceiveMessage receiver = takePosted(tag);
        if (receiver == null) {
          append(endpoint.pool().announced(tag, length, id));
        } else {
          grant(id, length, receiver);
        }
      }
      case Frame.GRANT -> {
        SendMessage message = announced.get(id);
        require(message != null);
        if (!message.isDropped()) {
          require(message.granted(tag));
          granted.add(message);
        }
      }
      case Frame.WITHDRAW -> {
        withdraw(id);
        link.put(Frame.WITHDRAWN, 0, 0, id);
      }
      case Frame.WITHDRAWN -> {
        SendMessage message = announced.get(id);
        require(message != null && message.isDropped());
        announced.free(id);
      }
      case Frame.CREDIT -> {
        require(length >= 0 && length <= WINDOW_BYTES - window);
        window += length;
      }
      case Frame.BYE -> left = true;
      default -> require(endpoint.jobFrame(this, type, length));
    }
  }

  private void withdraw(int senderId) {
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

  private static void require(boolean valid) throws IOException {
    if (!valid) {
      throw new ProtocolException("it has sent what no rank sends");
    }
  }

  /** Adds a frame of the job. */
  void tell(int type, int length) {
    if (link != null) {
      link.put(type, 0, length, 0);
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

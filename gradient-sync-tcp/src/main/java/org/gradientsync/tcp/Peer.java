package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.regex.Pattern;
import org.gradientsync.core.backend.Amounts;

/**
 * Another rank of the job: its connection, and how that has ended. Guarded by the endpoint's lock,
 * except where a method states otherwise.
 */
final class Peer {
  private static final Pattern SILENCE =
      Pattern.compile("timed out|unreachable|[Nn]o route|is down");
  private static final long GRACE_NANOS = 2_000_000_000L;

  private final Endpoint endpoint;
  private final int rank;
  private final Outbox outbox = new Outbox();
  private final Inbox inbox;
  private Link link; // null until there is a connection, and after its end
  private volatile String lost; // why, or null
  private volatile long lostAt;
  private volatile boolean mayLive; // although it is lost
  private volatile boolean left;
  private long heardNanos; // on the clock of heartbeats

  Peer(Endpoint endpoint, int rank) {
    this.endpoint = endpoint;
    this.rank = rank;
    inbox = new Inbox(endpoint, this);
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

  /** Whether it is lost, and its machine has not said that it has ended. Takes no lock. */
  boolean mayLive() {
    return mayLive;
  }

  /** Whether it was lost so long ago that all it has sent before was read. Takes no lock. */
  boolean isLostForLong() {
    return lost != null && System.nanoTime() - lostAt > GRACE_NANOS;
  }

  /** Null if it is not lost. Takes no lock. */
  String whyLost() {
    return lost;
  }

  void attach(SocketChannel channel) {
    link = new Link(this, outbox, inbox, channel);
    inbox.attach(link);
    advance();
  }

  /** Whether something waits to be sent, or is half received. */
  boolean isBusy() {
    return isOpen() && (outbox.hasQueued() || inbox.isBusy() || link != null && link.hasOutput());
  }

  /** Whether something waits to be sent without anybody's help. */
  boolean hasOutput() {
    return isOpen() && (outbox.isWaiting() || link != null && link.hasOutput());
  }

  /** Writes and reads what it can. */
  void advance() {
    if (link != null && link.hasOutput()) {
      flush();
    }
    if (link == null) {
      return;
    }
    try {
      link.read();
    } catch (IOException e) {
      lose(e);
      return;
    }
    if (left) {
      closeLink();
    } else if (link.hasOutput()) {
      flush();
    }
  }

  /** Writes what the socket takes. */
  void flush() {
    try {
      if (link != null) {
        link.flush();
      }
    } catch (IOException e) {
      readLast();
      lose(e);
    }
  }

  /** Reads all that the peer has sent before its connection broke, perhaps why. */
  private void readLast() {
    try {
      boolean more = true;
      while (more) {
        more = link.read();
      }
    } catch (IOException e) {
      // that was all
    }
  }

  /** Of a connection that the system gives up, the JDK has the system's text and no code. */
  private void lose(IOException e) {
    String why = String.valueOf(e.getMessage());
    lose("the connection broke: " + why, SILENCE.matcher(why).find());
  }

  /** Gives the peer up. */
  void lose(String why, boolean mayStillLive) {
    if (lost == null && !left) {
      mayLive = mayStillLive;
      lostAt = System.nanoTime();
      lost = why;
    }
    closeLink();
  }

  private void closeLink() {
    if (link != null) {
      link.close();
      link = null;
    }
    inbox.detach();
    if (left) {
      outbox.drop();
    }
  }

  /**
   * Sends a heartbeat, and gives the peer up if it has sent nothing for too long.
   *
   * @param now on a clock that stands still while this process does
   */
  void beat(long now, long silenceNanos) {
    if (link == null) {
      return;
    }
    if (link.wasHeard()) {
      heardNanos = now;
    } else if (now - heardNanos > silenceNanos) {
      lose("it has sent nothing for " + Amounts.time(now - heardNanos), true);
      return;
    }
    if (!link.hasOutput()) {
      link.put(Frame.HEARTBEAT, 0, 0, 0);
      flush();
    }
  }

  void send(SendMessage message) {
    if (left) {
      message.done = true; // nobody will receive it
      return;
    }
    outbox.add(message);
    if (link != null) {
      flush();
    } else if (lost == null) {
      endpoint.connect(this);
    }
  }

  void cancel(SendMessage message) {
    if (isOpen()) {
      outbox.cancel(message, link);
      flush();
    } else {
      outbox.forget(message);
    }
  }

  /** Says goodbye after what waits. */
  void leave() {
    outbox.leave();
    advance();
  }

  void receive(ReceiveMessage receiver) {
    if (!inbox.takeUnexpected(receiver)) {
      inbox.post(receiver);
      if (link == null && isOpen()) {
        endpoint.connect(this); // to learn of its end
      }
    }
  }

  /** Receives the oldest message with the tag that has arrived or was announced. */
  boolean takeUnexpected(ReceiveMessage receiver) {
    return inbox.takeUnexpected(receiver);
  }

  void unpost(ReceiveMessage receiver) {
    inbox.unpost(receiver);
  }

  /** Takes a receiver away from what it has been matched with. */
  void cancel(ReceiveMessage receiver) {
    inbox.cancel(receiver);
  }

  /** Handles a frame without payload. */
  void control(int type, int tag, int length, int id) throws IOException {
    switch (type) {
      case Frame.ANNOUNCE -> inbox.announce(tag, length, id);
      case Frame.GRANT -> outbox.grant(id, tag);
      case Frame.WITHDRAW -> {
        inbox.withdraw(id);
        link.put(Frame.WITHDRAWN, 0, 0, id);
      }
      case Frame.WITHDRAWN -> outbox.withdrawn(id);
      case Frame.CREDIT -> outbox.credit(length);
      case Frame.BYE -> left = true;
      case Frame.HEARTBEAT -> {} // that it has arrived is all
      default -> Outbox.require(endpoint.jobFrame(this, type, length));
    }
  }

  /** Adds a frame of the job. */
  void tell(int type, int length) {
    if (link != null) {
      link.put(type, 0, length, 0);
    }
  }
}

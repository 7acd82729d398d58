package org.gradientsync.tcp;

import java.io.IOException;
import java.net.SocketAddress;
import java.nio.channels.Channel;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that accepts connections, hears their proofs, and advances messages while the program
 * computes. A connection that has proved nothing costs a few hundred bytes; there are at most
 * {@link #MAX_PENDING} of them, each for at most {@link #LIMIT_NANOS}.
 */
final class Listener implements AutoCloseable {
  static final int MAX_PENDING = 64;
  static final long LIMIT_NANOS = 5_000_000_000L;

  /** More than {@link OutgoingHandshake#MILLIS}, after which nobody confirms any more. */
  private static final long CONFIRM_NANOS = 2 * LIMIT_NANOS;

  private static final Logger log = LoggerFactory.getLogger(Listener.class);
  private static final long BUSY_MILLIS = 1;
  private static final long IDLE_MILLIS = 10;
  private static final int ACCEPTS = 16; // before the others get their turn

  /** What the owner decides. Called by the listener's thread. */
  interface Doorkeeper {
    /** What to answer to a connection that has proved that it has the secret. */
    int admit(Handshake.Hello hello);

    /** Takes over a connection that was admitted, and that the other side has confirmed. */
    void connected(Handshake.Hello hello, SocketChannel channel);

    /** A connection that was admitted has ended without that. */
    default void unconfirmed(Handshake.Hello hello) {}

    /**
     * Takes over a connection that has registered; its channel stays watched.
     *
     * @param settings of one that joins a job that has started, otherwise empty
     */
    void registered(Handshake.Hello hello, Member member, String settings, SocketChannel channel);

    /** A registered connection has ended. */
    void ended(SocketChannel channel);

    /** Advances messages, and returns whether some wait. */
    boolean advance();
  }

  /** Connections that were refused for the same reason. Any thread may read it. */
  private static final class Refusals {
    private final String reason;
    private volatile int count;
    private volatile SocketAddress last;

    Refusals(String reason) {
      this.reason = reason;
    }

    void add(SocketChannel channel) throws IOException {
      last = channel.getRemoteAddress();
      count++;
    }

    @Override
    public String toString() {
      return count == 0
          ? ""
          : "; %s connections %s, the last one from %s".formatted(count, reason, last);
    }
  }

  private final Selector selector;
  private final ServerSocketChannel server;
  private final Handshake handshake;
  private final Doorkeeper keeper;
  private final Deque<IncomingHandshake> pending = new ArrayDeque<>(); // oldest first
  private final Deque<IncomingHandshake> admitted = new ArrayDeque<>(); // not confirmed, as above
  private final Refusals otherSecret = new Refusals("had another secret");
  private final Refusals otherProtocol =
      new Refusals("came from another version of gradient-sync-tcp");
  private final Thread thread;
  private volatile boolean closed;
  private volatile boolean withoutDescriptors;

  Listener(ServerSocketChannel server, Handshake handshake, Doorkeeper keeper, String name)
      throws IOException {
    this.server = server;
    this.handshake = handshake;
    this.keeper = keeper;
    selector = Selector.open();
    server.configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT);
    thread = new Thread(this::run, name);
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  /** How many connections were refused and why, for errors, or an empty text. */
  String refusals(int rank) {
    String descriptors = withoutDescriptors ? "; " + Descriptors.text(rank) : "";
    return "%s%s%s".formatted(otherSecret, otherProtocol, descriptors);
  }

  private void run() {
    try {
      boolean busy = false;
      while (!closed) {
        selector.select(this::handle, busy ? BUSY_MILLIS : IDLE_MILLIS);
        dropLate();
        busy = keeper.advance();
      }
    } catch (IOException | ClosedSelectorException e) {
      log.debug("no longer listening", e);
    } catch (RuntimeException | Error e) {
      log.error("the thread that accepts connections has failed: {}", thread.getName(), e);
    } finally {
      end();
    }
  }

  private void handle(SelectionKey key) {
    if (!key.isValid()) {
      return;
    }
    if (key.channel() == server) {
      accept();
    } else if (key.attachment() instanceof IncomingHandshake one) {
      advance(one, key);
    } else {
      key.cancel();
      keeper.ended((SocketChannel) key.channel());
    }
  }

  private void accept() {
    for (int i = 0; i < ACCEPTS; i++) {
      try {
        SocketChannel channel = server.accept();
        if (channel == null) {
          return;
        }
        withoutDescriptors = false;
        if (pending.size() == MAX_PENDING) {
          drop(pending.peek());
        }
        IncomingHandshake one = new IncomingHandshake(channel, handshake);
        pending.add(one);
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_READ, one);
      } catch (IOException e) {
        log.debug("cannot accept a connection", e);
        withoutDescriptors = Descriptors.areExhausted(e);
        return;
      }
    }
  }

  private void advance(IncomingHandshake one, SelectionKey key) {
    try {
      switch (one.advance(keeper)) {
        case GOES_ON -> {
          if (one.isAdmitted() && pending.remove(one)) {
            admitted.add(one); // it has proved all, and must not end once it has confirmed
          }
        }
        case OTHER_PROTOCOL -> refuse(one, otherProtocol);
        case OTHER_SECRET -> refuse(one, otherSecret);
        case REFUSED -> drop(one);
        case CONNECTED -> {
          pending.remove(one);
          admitted.remove(one);
          key.cancel();
          keeper.connected(one.hello(), one.channel());
        }
        case REGISTERED -> {
          pending.remove(one);
          key.attach(null); // readable now means that it has ended
          keeper.registered(one.hello(), one.member(), one.settings(), one.channel());
        }
      }
    } catch (IOException | IllegalArgumentException e) {
      drop(one);
    }
  }

  private void refuse(IncomingHandshake one, Refusals why) throws IOException {
    why.add(one.channel());
    drop(one);
  }

  private void dropLate() {
    long now = System.nanoTime();
    while (!pending.isEmpty() && now - pending.peek().since() > LIMIT_NANOS) {
      drop(pending.peek());
    }
    while (!admitted.isEmpty() && now - admitted.peek().since() > CONFIRM_NANOS) {
      IncomingHandshake one = admitted.peek();
      advance(one, one.channel().keyFor(selector)); // this process may have been suspended
      if (admitted.contains(one)) {
        drop(one);
      }
    }
  }

  private void drop(IncomingHandshake one) {
    pending.remove(one);
    admitted.remove(one);
    close(one.channel());
    if (one.isAdmitted()) {
      keeper.unconfirmed(one.hello());
    }
  }

  static void close(Channel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      log.debug("cannot close a socket", e);
    }
  }

  /** Accepts nothing any more; the thread goes on to advance messages until {@link #close}. */
  void refuseAll() throws IOException {
    server.close();
  }

  private void end() {
    for (SelectionKey key : selector.keys()) {
      if (key.isValid() && key.attachment() instanceof IncomingHandshake one) {
        close(one.channel());
      }
    }
    try {
      server.close();
      selector.close();
    } catch (IOException e) {
      log.debug("cannot stop listening", e);
    }
  }

  /** Ends the thread. Does not wait for it. */
  @Override
  public void close() {
    closed = true;
    selector.wakeup();
  }
}

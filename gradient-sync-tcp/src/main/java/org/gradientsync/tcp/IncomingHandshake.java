package org.gradientsync.tcp;

import java.io.EOFException;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.gradientsync.core.backend.ShortText;

/**
 * The acceptor's side of a {@link Handshake}, which never blocks and reads no more than the fixed
 * parts. For one thread.
 */
final class IncomingHandshake {
  /** What has become of it. */
  enum State {
    GOES_ON,
    OTHER_PROTOCOL,
    OTHER_SECRET,
    REFUSED,
    CONNECTED,
    REGISTERED
  }

  private static final int LARGEST = Member.BYTES + Handshake.SETTINGS;

  private final SocketChannel channel;
  private final Handshake handshake;
  private long since = System.nanoTime();
  private final ByteBuffer bytes = ByteBuffer.allocate(LARGEST);
  private byte[] first; // the connector's hello, once it has come
  private byte[] nonce;
  private Handshake.Hello hello;
  private boolean proved;
  private boolean admitted;
  private Member member;
  private String settings = "";

  IncomingHandshake(SocketChannel channel, Handshake handshake) {
    this.channel = channel;
    this.handshake = handshake;
    bytes.limit(Handshake.Hello.BYTES);
  }

  SocketChannel channel() {
    return channel;
  }

  /** When it began, or was admitted. */
  long since() {
    return since;
  }

  Handshake.Hello hello() {
    return hello;
  }

  /** Whether it has been admitted without registering, and may not have confirmed that yet. */
  boolean isAdmitted() {
    return admitted;
  }

  Member member() {
    return member;
  }

  String settings() {
    return settings;
  }

  /** Reads what has come, and answers. */
  State advance(Listener.Doorkeeper keeper) throws IOException {
    State state = State.GOES_ON;
    while (state == State.GOES_ON) {
      int read = channel.read(bytes);
      if (read < 0) {
        throw new EOFException();
      }
      if (bytes.hasRemaining()) {
        return state;
      }
      byte[] part = Arrays.copyOf(bytes.array(), bytes.limit());
      bytes.clear();
      if (first == null) {
        state = greet(part);
      } else if (!proved) {
        state = prove(part, keeper);
      } else if (admitted) {
        state = State.CONNECTED;
      } else {
        member = Member.decode(part, 0);
        if (hello.joins()) {
          settings = ShortText.get(ByteBuffer.wrap(part), Member.BYTES, Handshake.SETTINGS);
        }
        state = State.REGISTERED;
      }
    }
    return state;
  }

  private State greet(byte[] part) throws IOException {
    first = part;
    hello = Handshake.Hello.decode(part);
    nonce = Handshake.random(Handshake.NONCE);
    if (hello == null) {
      ByteBuffer from = ByteBuffer.wrap(part);
      if (from.getLong() != Handshake.MAGIC) {
        return State.REFUSED;
      }
      write(Handshake.challenge(nonce)); // it then sees that this is another version
      return from.getInt() == Handshake.PROTOCOL ? State.REFUSED : State.OTHER_PROTOCOL;
    }
    write(Handshake.challenge(nonce));
    bytes.limit(Handshake.PROOF);
    return State.GOES_ON;
  }

  private State prove(byte[] part, Listener.Doorkeeper keeper) throws IOException {
    if (!Handshake.same(part, handshake.connectorProof(first, nonce))) {
      write(ByteBuffer.allocate(Handshake.ANSWER).putInt(Handshake.OTHER_SECRET).array());
      return State.OTHER_SECRET;
    }
    proved = true;
    int status = keeper.admit(hello);
    admitted = status == Handshake.OK && !hello.register();
    since = admitted ? System.nanoTime() : since;
    write(handshake.answer(first, nonce, status));
    if (status != Handshake.OK) {
      return State.REFUSED;
    }
    prepare(channel);
    bytes.limit(admitted ? Handshake.CONFIRMATION : hello.joins() ? LARGEST : Member.BYTES);
    return State.GOES_ON;
  }

  static void prepare(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
  }

  private void write(byte[] part) throws IOException {
    ByteBuffer rest = ByteBuffer.wrap(part);
    channel.write(rest);
    if (rest.hasRemaining()) {
      throw new IOException("a new connection takes no " + part.length + " bytes");
    }
  }
}

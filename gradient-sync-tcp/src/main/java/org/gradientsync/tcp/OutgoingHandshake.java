package org.gradientsync.tcp;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.gradientsync.UnavailableException;

/** The connector's side of a {@link Handshake}. Blocks for a limited time. */
final class OutgoingHandshake {
  /** The acceptor has proved that it has the secret, and does not want this connection now. */
  static final class RefusedException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int status;

    RefusedException(int status, String text) {
      super(text);
      this.status = status;
    }

    int status() {
      return status;
    }
  }

  /** How long each part may take, in milliseconds, if the caller has no lower limit. */
  static final int MILLIS = 5_000;

  private final Handshake handshake;
  private final InetAddress from; // or null
  private final int millis;
  private final int protocol;

  OutgoingHandshake(Handshake handshake, InetAddress from, int millis) {
    this(handshake, from, millis, Handshake.PROTOCOL);
  }

  OutgoingHandshake(Handshake handshake, InetAddress from, int millis, int protocol) {
    this.handshake = handshake;
    this.from = from;
    this.millis = millis;
    this.protocol = protocol;
  }

  /**
   * Connects.
   *
   * @return a channel in blocking mode
   * @throws RefusedException if the other rank does not want it now
   * @throws IOException if another attempt may do better
   * @throws UnavailableException if none will
   */
  SocketChannel connect(InetSocketAddress to, Handshake.Hello hello) throws IOException {
    return connect(to, hello, millis);
  }

  /** As above, with a lower limit until the other machine answers. */
  SocketChannel connect(InetSocketAddress to, Handshake.Hello hello, int connectMillis)
      throws IOException {
    SocketChannel channel = SocketChannel.open();
    try {
      // A later job may listen at the port that the system gives it, also soon after its end.
      channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      if (from != null) {
        channel.bind(new InetSocketAddress(from, 0));
      }
      channel.socket().connect(to, Math.min(millis, connectMillis));
      if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
        throw new IOException("nobody listens there"); // the system has connected it with itself
      }
      IncomingHandshake.prepare(channel);
      greet(channel, to, hello);
      return channel;
    } catch (IOException | RuntimeException | Error e) {
      Listener.close(channel);
      throw e;
    }
  }

  /** Proves, and has it proved, on a connection that exists. */
  void greet(SocketChannel channel, InetSocketAddress to, Handshake.Hello hello)
      throws IOException {
    byte[] first = hello.encode(protocol);
    write(channel, first);
    ByteBuffer challenge = ByteBuffer.wrap(read(channel, Handshake.CHALLENGE, deadline()));
    if (challenge.getLong() != Handshake.MAGIC) {
      throw new UnavailableException(
          ("something else listens at the address of a rank: address=%s, rank=%s;"
                  + " choose another port")
              .formatted(to, hello.rank()));
    }
    int other = challenge.getInt();
    if (other != protocol) {
      throw new UnavailableException(
          ("the ranks have different versions of gradient-sync-tcp:"
                  + " rank=%s, protocol=%s, rank %s has %s; use one version on all ranks")
              .formatted(hello.rank(), protocol, hello.target(), other));
    }
    byte[] nonce = new byte[Handshake.NONCE];
    challenge.get(nonce);
    long deadline = deadline();
    write(channel, handshake.connectorProof(first, nonce));
    byte[] answer = read(channel, Handshake.ANSWER, deadline);
    int status = ByteBuffer.wrap(answer).getInt();
    if (status == Handshake.OTHER_SECRET) {
      throw new UnavailableException(
          ("rank %s has another secret: rank=%s, address=%s;"
                  + " set GRADIENTSYNC_SECRET, or tcp.secret, to the same text on all ranks,"
                  + " or choose another port if that is another job")
              .formatted(hello.target(), hello.rank(), to));
    }
    if (!Handshake.same(answer, handshake.answer(first, nonce, status))) {
      throw new UnavailableException(
          "something at the address of rank %s has not got the job's secret: rank=%s, address=%s"
              .formatted(hello.target(), hello.rank(), to));
    }
    if (status != Handshake.OK) {
      throw new RefusedException(
          status,
          status == Handshake.STARTED
              ? "the job there has started already, with all its ranks: this one is too late, or another"
                  + " process has its number"
              : status == Handshake.CROSSED ? "it connects itself" : "another job listens there");
    }
    if (!hello.register()) {
      if (System.nanoTime() - deadline > 0) {
        throw new SocketTimeoutException("this process was suspended, and confirms too late");
      }
      write(channel, new byte[Handshake.CONFIRMATION]);
    }
  }

  private long deadline() {
    return System.nanoTime() + millis * 1_000_000L;
  }

  static void write(SocketChannel channel, byte[] bytes) throws IOException {
    ByteBuffer rest = ByteBuffer.wrap(bytes);
    while (rest.hasRemaining()) {
      channel.write(rest);
    }
  }

  /**
   * Reads a part of a known size.
   *
   * @param deadline as of {@link System#nanoTime}
   */
  static byte[] read(SocketChannel channel, int bytes, long deadline) throws IOException {
    byte[] part = new byte[bytes];
    InputStream in = channel.socket().getInputStream();
    int have = 0;
    while (have < bytes) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        throw new SocketTimeoutException("no answer in time");
      }
      channel.socket().setSoTimeout((int) Math.min(left, Integer.MAX_VALUE));
      int read = in.read(part, have, bytes - have);
      if (read < 0) {
        throw new EOFException("it has closed the connection");
      }
      have += read;
    }
    return Arrays.copyOf(part, bytes);
  }
}

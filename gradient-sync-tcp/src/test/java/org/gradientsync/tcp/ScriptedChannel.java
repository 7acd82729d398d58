package org.gradientsync.tcp;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.Random;
import java.util.Set;

/** A connection without a network: gives the bytes that a test has put in, and keeps the others. */
final class ScriptedChannel extends SocketChannel {
  private final Random random;
  private final ByteArrayOutputStream written = new ByteArrayOutputStream();
  private ByteBuffer in = ByteBuffer.allocate(0);
  private int taken;
  private IOException failure; // or null
  private IOException writeFailure; // or null

  ScriptedChannel(Random random) {
    super(SelectorProvider.provider());
    this.random = random;
  }

  /** What the other side has sent. After it, nothing comes. */
  void send(byte[] bytes) {
    in = ByteBuffer.allocate(in.remaining() + bytes.length).put(in).put(bytes).flip();
  }

  /** From now on reads throw. */
  void fail(IOException e) {
    failure = e;
  }

  /** From now on writes throw. */
  void failWrites(IOException e) {
    writeFailure = e;
  }

  byte[] written() {
    return written.toByteArray();
  }

  /** How many bytes were read. */
  int taken() {
    return taken;
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    if (failure != null) {
      throw failure;
    }
    int count = Math.min(to.remaining(), in.remaining());
    if (count > 1 && random.nextBoolean()) {
      count = 1 + random.nextInt(count);
    }
    taken += count;
    for (int i = 0; i < count; i++) {
      to.put(in.get());
    }
    return count;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    if (writeFailure != null) {
      throw writeFailure;
    }
    int count = from.remaining();
    while (from.hasRemaining()) {
      written.write(from.get());
    }
    return count;
  }

  /** For who reads streams: the bytes, and then the end. */
  @Override
  public Socket socket() {
    byte[] rest = new byte[in.remaining()];
    in.duplicate().get(rest);
    return new Socket() {
      @Override
      public void setSoTimeout(int millis) {}

      @Override
      public InputStream getInputStream() {
        return new ByteArrayInputStream(rest) {
          @Override
          public synchronized int read(byte[] to, int offset, int length) {
            int count = super.read(to, offset, length);
            if (count > 0) {
              in.position(in.position() + count);
              taken += count;
            }
            return count;
          }
        };
      }
    };
  }

  @Override
  public long read(ByteBuffer[] to, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long write(ByteBuffer[] from, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public SocketChannel bind(SocketAddress local) {
    return this;
  }

  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) {
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) {
    return null;
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return Set.of();
  }

  @Override
  public SocketChannel shutdownInput() {
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() {
    return this;
  }

  @Override
  public boolean isConnected() {
    return true;
  }

  @Override
  public boolean isConnectionPending() {
    return false;
  }

  @Override
  public boolean connect(SocketAddress remote) {
    return true;
  }

  @Override
  public boolean finishConnect() {
    return true;
  }

  @Override
  public SocketAddress getRemoteAddress() {
    return null;
  }

  @Override
  public SocketAddress getLocalAddress() {
    return null;
  }

  @Override
  protected void implCloseSelectableChannel() {}

  @Override
  protected void implConfigureBlocking(boolean block) {}
}

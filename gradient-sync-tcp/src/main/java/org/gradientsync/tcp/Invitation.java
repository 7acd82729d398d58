package org.gradientsync.tcp;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What the ranks of a job need to know to begin a new one.
 *
 * @param size the number of ranks
 * @param host where rank 0 listens
 * @param port where rank 0 listens
 */
record Invitation(int size, String host, int port) {
  /** What a newcomer gets: its number, and the new job's size and port. */
  static final int BYTES = 3 * Integer.BYTES;

  byte[] encode() {
    byte[] name = host.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(2 * Integer.BYTES + name.length)
        .putInt(size)
        .putInt(port)
        .put(name)
        .array();
  }

  static Invitation decode(byte[] bytes) {
    ByteBuffer from = ByteBuffer.wrap(bytes);
    int size = from.getInt();
    int port = from.getInt();
    String host = StandardCharsets.UTF_8.decode(from).toString();
    return new Invitation(size, host, port);
  }
}

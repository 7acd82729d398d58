package org.gradientsync.tcp;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.ShortText;

/**
 * What a rank says of itself when it registers, and what all ranks then know of it.
 *
 * @param address where it listens
 * @param localRank its number on its node by its launcher, or -1
 * @param version the library's version
 * @param place its host and process
 */
record Member(InetSocketAddress address, int localRank, String version, RankPlace place) {
  private static final int ADDRESS = 16;
  private static final int VERSION = 64;
  private static final int PLACE = 3 * Integer.BYTES + ADDRESS + VERSION;

  /** The size of {@link #encode} in bytes. */
  static final int BYTES = PLACE + RankPlace.BYTES;

  byte[] encode() {
    byte[] host = address.getAddress().getAddress();
    ByteBuffer bytes = ByteBuffer.allocate(BYTES);
    bytes.putInt(address.getPort()).putInt(localRank).putInt(host.length).put(host);
    ShortText.put(bytes, PLACE - VERSION, VERSION, version);
    return bytes.position(PLACE).put(place.encode()).array();
  }

  /**
   * Reads what {@link #encode} has written.
   *
   * @throws IllegalArgumentException if it has not
   */
  static Member decode(byte[] bytes, int offset) {
    ByteBuffer from = ByteBuffer.wrap(bytes, offset, BYTES);
    int port = from.getInt();
    int localRank = from.getInt();
    int length = from.getInt();
    if (port < 1 || port > 0xffff || length != 4 && length != ADDRESS) {
      throw new IllegalArgumentException("not an address: port=" + port + ", length=" + length);
    }
    byte[] host = Arrays.copyOfRange(bytes, from.position(), from.position() + length);
    String version = ShortText.get(from, offset + PLACE - VERSION, VERSION);
    RankPlace place = RankPlace.decode(bytes, offset + PLACE);
    try {
      InetAddress address = InetAddress.getByAddress(host);
      return new Member(new InetSocketAddress(address, port), localRank, version, place);
    } catch (UnknownHostException e) {
      throw new IllegalArgumentException(e);
    }
  }
}

package org.gradientsync.internal.ranks;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Text in a piece of memory: cut to what fits there, and read as something of a stranger's. */
public final class ShortText {
  private ShortText() {}

  /**
   * Writes as much as fits, and zeros behind it.
   *
   * @param memory written to
   * @param at the first byte, an absolute index
   * @param bytes how many there are
   * @param text any text
   */
  public static void put(ByteBuffer memory, int at, int bytes, String text) {
    memory.put(at, Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), bytes));
  }

  /**
   * What {@link #put} has written, in one line.
   *
   * @param memory read from
   * @param at the first byte, an absolute index
   * @param bytes how many there are
   * @return what {@link #oneLine} makes of it
   */
  public static String get(ByteBuffer memory, int at, int bytes) {
    byte[] text = new byte[bytes];
    memory.get(at, text);
    return oneLine(new String(text, StandardCharsets.UTF_8).trim());
  }

  /** What {@link #get} reads where {@link #put} has written a text. */
  static String cut(String text, int bytes) {
    if (text.isEmpty()) {
      return text;
    }
    ByteBuffer memory = ByteBuffer.allocate(bytes);
    put(memory, 0, bytes, text);
    return get(memory, 0, bytes);
  }

  /**
   * A stranger's text, in which nothing can break a line or steer a terminal.
   *
   * @param text any text
   * @return as long, with blanks instead of what has no place in a line
   */
  public static String oneLine(String text) {
    return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", " ");
  }
}

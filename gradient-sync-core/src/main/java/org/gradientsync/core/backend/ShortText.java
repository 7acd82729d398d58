package org.gradientsync.core.backend;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Text in a fixed number of bytes of memory. It is truncated when written, and not trusted when
 * read.
 */
public final class ShortText {
  private ShortText() {}

  /**
   * Writes as much of the text as fits, followed by zeros.
   *
   * @param memory is written
   * @param at the first byte, an absolute index
   * @param bytes the size of the field
   * @param text of any length
   */
  public static void put(ByteBuffer memory, int at, int bytes, String text) {
    memory.put(at, Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), bytes));
  }

  /**
   * {@return a text that {@link #put} has written, on one line; empty if there is none}
   *
   * @param memory is read
   * @param at the first byte, an absolute index
   * @param bytes the size of the field
   */
  public static String get(ByteBuffer memory, int at, int bytes) {
    if (bytes == 0 || memory.get(at) == 0) {
      return ""; // most are, and reading them must cost nothing
    }
    byte[] text = new byte[bytes];
    memory.get(at, text);
    return oneLine(new String(text, StandardCharsets.UTF_8).trim());
  }

  /**
   * {@return a text with blanks for characters that could break a line or control a terminal, as
   * long as before}
   *
   * @param text of any length
   */
  public static String oneLine(String text) {
    return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", " ");
  }
}

package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Text in a piece of a message: cut to what fits there, and read as something of a stranger's. */
final class ShortText {
  private ShortText() {}

  /** Writes as much as fits into so many bytes, and zeros behind it. */
  static void put(ByteBuffer memory, int at, int bytes, String text) {
    memory.put(at, Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), bytes));
  }

  /** What {@link #put} has written, in one line. */
  static String get(ByteBuffer memory, int at, int bytes) {
    byte[] text = new byte[bytes];
    memory.get(at, text);
    return new String(text, StandardCharsets.UTF_8)
        .trim()
        .replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", " ");
  }
}

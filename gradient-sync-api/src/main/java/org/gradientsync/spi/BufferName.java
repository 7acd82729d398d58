package org.gradientsync.spi;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A buffer's name in the form that is sent to other ranks: a hash of the whole name, which the
 * ranks compare, and a text of limited length, which errors show.
 *
 * @param text the whole name; empty for none
 * @param hash a 64-bit hash of the whole name; 0 for none
 * @param shown {@value #BYTES} bytes of UTF-8, padded with zeros; a longer name is shortened to its
 *     beginning, its end and a part of the hash, which distinguishes it from names with the same
 *     beginning and end
 */
record BufferName(String text, long hash, byte[] shown) {
  static final int BYTES = 48;
  static final BufferName NONE = new BufferName("", 0, new byte[BYTES]);

  private static final String GAP = "...";
  private static final int HEAD = 17;
  private static final int TAIL = 18;

  static BufferName of(String text) {
    if (text.isEmpty()) {
      return NONE;
    }
    byte[] all = text.getBytes(StandardCharsets.UTF_8);
    long hash = hash(all);
    byte[] shown = all.length <= BYTES ? all : shortened(all, hash);
    return new BufferName(text, hash, Arrays.copyOf(shown, BYTES));
  }

  /** The text that errors show. */
  String shownText() {
    return new String(shown, StandardCharsets.UTF_8).trim();
  }

  /** FNV-1a. */
  private static long hash(byte[] bytes) {
    long hash = 0xcbf29ce484222325L;
    for (byte b : bytes) {
      hash = (hash ^ b & 0xff) * 0x100000001b3L;
    }
    return hash == NONE.hash ? 1 : hash;
  }

  private static byte[] shortened(byte[] all, long hash) {
    int head = HEAD;
    while (isInsideCharacter(all[head])) {
      head--;
    }
    int tail = all.length - TAIL;
    while (isInsideCharacter(all[tail])) {
      tail++;
    }
    String begin = new String(all, 0, head, StandardCharsets.UTF_8);
    String end = new String(all, tail, all.length - tail, StandardCharsets.UTF_8);
    String text = String.format("%s%s%s #%08x", begin, GAP, end, (int) hash);
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static boolean isInsideCharacter(byte b) {
    return (b & 0xc0) == 0x80;
  }
}

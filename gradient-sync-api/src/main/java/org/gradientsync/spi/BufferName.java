package org.gradientsync.spi;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A buffer's name as other ranks receive it: a hash of all of it, which the ranks compare, and a
 * text of limited length, which errors show.
 *
 * @param text as given; empty for none
 * @param hash 64 bits of the whole name; 0 for none
 * @param shown {@value #BYTES} bytes of UTF-8, filled up with zeros; of a longer name its beginning
 *     and its end, with a part of the hash, which tells it from others that begin and end alike
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

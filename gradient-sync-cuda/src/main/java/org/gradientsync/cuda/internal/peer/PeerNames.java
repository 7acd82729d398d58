package org.gradientsync.cuda.internal.peer;

import java.util.LinkedHashMap;
import java.util.Map;
import org.gradientsync.spi.AbstractDeviceBuffer;

/**
 * Describes registered buffers in error texts. Finds them by registration number, the only name
 * that kernels know, and remembers only the latest ones. Any thread may call it.
 */
final class PeerNames {
  private static final int REMEMBERED = 1024;

  private final Map<Integer, AbstractDeviceBuffer> buffers =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, AbstractDeviceBuffer> eldest) {
          return size() > REMEMBERED;
        }
      };

  private final Map<Integer, String> collectives =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, String> eldest) {
          return size() > REMEMBERED;
        }
      };

  synchronized void add(int registration, AbstractDeviceBuffer buffer) {
    buffers.put(registration, buffer);
  }

  /** Remembers the text of a collective, which has a registration of its own. */
  synchronized void addCollective(int registration, String text) {
    collectives.put(registration, text);
  }

  /** Describes a collective for the table of the ranks' calls. */
  synchronized String ofCollective(int registration) {
    return collectives.getOrDefault(registration, "a collective");
  }

  /** Describes a buffer for the table of the ranks' calls. */
  synchronized String of(int registration) {
    AbstractDeviceBuffer buffer = buffers.get(registration);
    return buffer == null ? "a buffer" : buffer.describe();
  }

  /** Describes where an element is in its buffer. */
  synchronized String placeOf(int registration, long element) {
    AbstractDeviceBuffer buffer = buffers.get(registration);
    return buffer == null ? "index=" + element : buffer.placeOf(element);
  }
}

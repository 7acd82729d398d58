package org.gradientsync.cuda.internal.peer;

import java.util.LinkedHashMap;
import java.util.Map;
import org.gradientsync.spi.AbstractDeviceBuffer;

/**
 * What errors call the buffers that the ranks have registered together, by the number of their
 * registration: kernels know no other name. Remembers the last ones. Called by any thread.
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

  synchronized void add(int registration, AbstractDeviceBuffer buffer) {
    buffers.put(registration, buffer);
  }

  /** The buffer, as in the tables of who asked for what. */
  synchronized String of(int registration) {
    AbstractDeviceBuffer buffer = buffers.get(registration);
    return buffer == null ? "a buffer" : buffer.describe();
  }

  /** Where an element of the buffer is. */
  synchronized String placeOf(int registration, long element) {
    AbstractDeviceBuffer buffer = buffers.get(registration);
    return buffer == null ? "index=" + element : buffer.placeOf(element);
  }
}

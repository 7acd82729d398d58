package org.gradientsync.internal.host;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A run of bytes in the host's memory, as a row of segments because a Java buffer ends at 2 GiB.
 */
final class HostMemory {
  /** The {@link #id} of memory that other processes cannot reach. */
  static final long PRIVATE = -1;

  private final ByteBuffer[] segments;
  private final long id;
  private final long first;
  private final Runnable release;

  /**
   * Memory.
   *
   * @param segments all of the same size but the last, in native byte order
   * @param id by which other processes of the job find it, or {@link #PRIVATE}
   * @param first where it begins in what has that id, in bytes
   * @param release called when it is not needed any more
   */
  HostMemory(ByteBuffer[] segments, long id, long first, Runnable release) {
    this.segments = segments;
    this.id = id;
    this.first = first;
    this.release = release;
  }

  static HostMemory ofPrivate(ByteBuffer... segments) {
    return new HostMemory(segments, PRIVATE, 0, () -> {});
  }

  int segments() {
    return segments.length;
  }

  ByteBuffer segment(int index) {
    return segments[index];
  }

  long id() {
    return id;
  }

  long first() {
    return first;
  }

  void release() {
    // Java has no call that frees a direct buffer: without references the collector does it.
    Arrays.fill(segments, null);
    release.run();
  }
}

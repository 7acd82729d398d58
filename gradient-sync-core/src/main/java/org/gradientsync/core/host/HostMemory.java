package org.gradientsync.core.host;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** A range of host memory, as a row of segments, because a Java buffer ends at 2 GiB. */
final class HostMemory {
  /** The {@link #id} of memory that other processes cannot reach. */
  static final long PRIVATE = -1;

  private final ByteBuffer[] segments;
  private final long id;
  private final long first;
  private final Runnable release;

  /**
   * @param segments all of the same size except the last, in native byte order
   * @param id by which other processes of the job find the memory, or {@link #PRIVATE}
   * @param first its offset in the memory with that id, in bytes
   * @param release called when it is no longer needed
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
    // The collector frees direct buffers that nobody refers to; the action frees a file at once.
    Arrays.fill(segments, null);
    release.run();
  }
}

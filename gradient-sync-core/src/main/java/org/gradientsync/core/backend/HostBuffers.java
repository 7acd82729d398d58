package org.gradientsync.core.backend;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** Operations on {@code java.nio} buffers of any type. */
public final class HostBuffers {
  private HostBuffers() {}

  /**
   * Copies elements between two buffers of the same class. Does not change positions.
   *
   * @param source is not changed
   * @param from the first element of the source, an absolute index
   * @param target may share memory with the source
   * @param to the first element of the target, an absolute index
   * @param count the number of elements
   */
  public static void copy(Buffer source, int from, Buffer target, int to, int count) {
    if (source instanceof FloatBuffer s) {
      ((FloatBuffer) target).put(to, s, from, count);
    } else if (source instanceof DoubleBuffer s) {
      ((DoubleBuffer) target).put(to, s, from, count);
    } else if (source instanceof ShortBuffer s) {
      ((ShortBuffer) target).put(to, s, from, count);
    } else if (source instanceof IntBuffer s) {
      ((IntBuffer) target).put(to, s, from, count);
    } else if (source instanceof LongBuffer s) {
      ((LongBuffer) target).put(to, s, from, count);
    } else {
      ((ByteBuffer) target).put(to, (ByteBuffer) source, from, count);
    }
  }

  /**
   * {@return new direct memory: zeros, in native byte order}
   *
   * @param bytes its size
   */
  public static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * @param memory direct memory in native byte order
   * @param from the first byte, an absolute index
   * @param count the number of bytes
   */
  public static void fillZero(ByteBuffer memory, int from, int count) {
    int at = from;
    int end = from + count;
    for (; at <= end - Long.BYTES; at += Long.BYTES) {
      memory.putLong(at, 0);
    }
    for (; at < end; at++) {
      memory.put(at, (byte) 0);
    }
  }
}

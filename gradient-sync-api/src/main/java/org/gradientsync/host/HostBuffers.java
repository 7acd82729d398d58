package org.gradientsync.host;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import org.gradientsync.DataType;

/** What {@code java.nio} lacks: one copy for all its buffer classes. */
public final class HostBuffers {
  private HostBuffers() {}

  /**
   * Copies elements between two buffers of the same class, moving no position.
   *
   * @param source copied from
   * @param from the first element there, an absolute index
   * @param target copied to
   * @param to the first element there, an absolute index
   * @param count how many elements
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
   * Bytes seen as elements of the same class as another buffer's.
   *
   * @param bytes in native byte order
   * @param like a buffer of the class wanted
   * @return a view of the bytes
   */
  public static Buffer viewLike(ByteBuffer bytes, Buffer like) {
    if (like instanceof FloatBuffer) {
      return bytes.asFloatBuffer();
    } else if (like instanceof DoubleBuffer) {
      return bytes.asDoubleBuffer();
    } else if (like instanceof ShortBuffer) {
      return bytes.asShortBuffer();
    } else if (like instanceof IntBuffer) {
      return bytes.asIntBuffer();
    } else if (like instanceof LongBuffer) {
      return bytes.asLongBuffer();
    }
    return bytes;
  }

  /**
   * Bytes seen as elements of a type.
   *
   * @param bytes in native byte order
   * @param type the element type
   * @return a view of the bytes: short for the 16-bit floats
   */
  public static Buffer view(ByteBuffer bytes, DataType type) {
    return switch (type) {
      case FLOAT16, BFLOAT16 -> bytes.asShortBuffer();
      case FLOAT32 -> bytes.asFloatBuffer();
      case FLOAT64 -> bytes.asDoubleBuffer();
      case INT32 -> bytes.asIntBuffer();
      case INT64 -> bytes.asLongBuffer();
    };
  }

  /**
   * The size of a buffer's elements.
   *
   * @param buffer any buffer but a char buffer
   * @return 1, 2, 4 or 8 bytes
   * @throws IllegalArgumentException for a char buffer
   */
  public static int elementSize(Buffer buffer) {
    if (buffer instanceof ByteBuffer) {
      return 1;
    } else if (buffer instanceof ShortBuffer) {
      return 2;
    } else if (buffer instanceof FloatBuffer || buffer instanceof IntBuffer) {
      return 4;
    } else if (buffer instanceof CharBuffer) {
      throw new IllegalArgumentException("char buffers are not supported: buffer=" + buffer);
    }
    return 8;
  }

  /**
   * Direct memory.
   *
   * @param bytes how many
   * @return zeros, in native byte order
   */
  public static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * Sets bytes to zero.
   *
   * @param memory direct memory in native byte order
   * @param from the first byte, an absolute index
   * @param count how many bytes
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

package org.gradientsync.spi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Locale;
import org.gradientsync.DataType;

/**
 * What the buffers of {@code java.nio} hold, whose classes do not say it in one way. Ranks tell
 * each other these by their places in this list.
 */
public enum HostElement {
  /** In a ByteBuffer, which may hold elements of any type. */
  BYTE(Byte.BYTES),
  /** In a ShortBuffer: a short, or a float of 16 bits. */
  SHORT(Short.BYTES),
  /** In a FloatBuffer. */
  FLOAT(Float.BYTES),
  /** In a DoubleBuffer. */
  DOUBLE(Double.BYTES),
  /** In an IntBuffer. */
  INT(Integer.BYTES),
  /** In a LongBuffer. */
  LONG(Long.BYTES);

  private final int size;

  HostElement(int size) {
    this.size = size;
  }

  /**
   * What a buffer holds; allocates nothing.
   *
   * @param buffer any buffer but a char buffer
   * @return its elements
   * @throws IllegalArgumentException for a char buffer
   */
  public static HostElement of(Buffer buffer) {
    if (buffer instanceof FloatBuffer) {
      return FLOAT;
    } else if (buffer instanceof ByteBuffer) {
      return BYTE;
    } else if (buffer instanceof DoubleBuffer) {
      return DOUBLE;
    } else if (buffer instanceof ShortBuffer) {
      return SHORT;
    } else if (buffer instanceof IntBuffer) {
      return INT;
    } else if (buffer instanceof LongBuffer) {
      return LONG;
    }
    throw new IllegalArgumentException("char buffers are not supported: buffer=" + buffer);
  }

  /**
   * What elements of a type are in Java.
   *
   * @param type the element type
   * @return SHORT for the 16-bit floats
   */
  public static HostElement of(DataType type) {
    return switch (type) {
      case FLOAT16, BFLOAT16 -> SHORT;
      case FLOAT32 -> FLOAT;
      case FLOAT64 -> DOUBLE;
      case INT32 -> INT;
      case INT64 -> LONG;
    };
  }

  /**
   * The size of an element.
   *
   * @return 1, 2, 4 or 8 bytes
   */
  public int size() {
    return size;
  }

  /**
   * Bytes seen as such elements.
   *
   * @param bytes in native byte order
   * @return a view of the bytes, or the bytes themselves
   */
  public Buffer view(ByteBuffer bytes) {
    return switch (this) {
      case BYTE -> bytes;
      case SHORT -> bytes.asShortBuffer();
      case FLOAT -> bytes.asFloatBuffer();
      case DOUBLE -> bytes.asDoubleBuffer();
      case INT -> bytes.asIntBuffer();
      case LONG -> bytes.asLongBuffer();
    };
  }

  /** As the language calls it, for example {@code float}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}

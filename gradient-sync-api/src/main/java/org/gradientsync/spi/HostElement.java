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

/** The element types of {@code java.nio} buffers. Ranks send them to each other as ordinals. */
public enum HostElement {
  /** The element of a ByteBuffer, which may hold elements of any type. */
  BYTE(Byte.BYTES),
  /** The element of a ShortBuffer: a short, or a 16-bit float. */
  SHORT(Short.BYTES),
  /** The element of a FloatBuffer. */
  FLOAT(Float.BYTES),
  /** The element of a DoubleBuffer. */
  DOUBLE(Double.BYTES),
  /** The element of an IntBuffer. */
  INT(Integer.BYTES),
  /** The element of a LongBuffer. */
  LONG(Long.BYTES);

  private final int size;

  HostElement(int size) {
    this.size = size;
  }

  /**
   * {@return the element type of a buffer} Allocates nothing.
   *
   * @param buffer any buffer but a char buffer
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
    throw new IllegalArgumentException(
        "char buffers are not supported: length=%s; copy the elements to a ShortBuffer"
            .formatted(buffer.remaining()));
  }

  /**
   * {@return the Java representation of a data type's elements, such as SHORT for 16-bit floats}
   *
   * @param type the data type
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

  /** Throws if a copy between a Java buffer and a device's buffer is not possible. */
  static void requireMatching(Buffer host, String role, AbstractDeviceBuffer buffer) {
    boolean bytes = host instanceof ByteBuffer;
    if (!bytes && of(host) != of(buffer.type())) {
      throw new IllegalArgumentException(
          "element type does not match: " + role + "=" + of(host) + ", buffer=" + buffer);
    }
    long expected = buffer.usedCount() * (bytes ? buffer.type().sizeInBytes() : 1);
    if (host.remaining() != expected) {
      throw new IllegalArgumentException(
          "length does not match: %s=%s, expected=%s, buffer=%s; use slice() for a part"
              .formatted(role, host.remaining(), expected, buffer));
    }
  }

  /** {@return the size of an element, 1, 2, 4 or 8 bytes} */
  public int size() {
    return size;
  }

  /**
   * {@return a view of bytes as elements of this type, or the bytes themselves}
   *
   * @param bytes a buffer in native byte order
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

  /** The name of the Java type, for example {@code float}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}

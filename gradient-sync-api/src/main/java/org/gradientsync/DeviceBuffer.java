package org.gradientsync;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A typed array of elements in a device's memory, which holds gradients.
 *
 * <p>A buffer belongs to a stream. On a GPU, {@link #copyFrom} and the collectives take effect in
 * the order in which they are called, and {@link #copyTo} waits until the values are there. On the
 * host, every call is complete when it returns.
 *
 * <p>A buffer is not thread-safe. What reads or writes its elements, or makes a view of them,
 * throws an {@link IllegalStateException} if it {@linkplain #isClosed is closed}.
 */
public interface DeviceBuffer extends AutoCloseable {
  /** {@return the element type} */
  DataType type();

  /** {@return the number of elements, 0 or more, which may exceed 2^31} */
  long count();

  /** {@return the size of all elements in bytes} */
  default long sizeInBytes() {
    return count() * type().sizeInBytes();
  }

  /** {@return the device that holds this buffer} */
  Device device();

  /**
   * Names this buffer. Errors and reports of all ranks show the name, and the ranks compare it:
   * calls do not match if the names differ, or if the buffers are views at different offsets in
   * buffers of the same name. A buffer without a name matches any other. The same holds for both
   * buffers of a call with an input and an output, but a rank's own block (the input of an
   * all-gather, the output of a scatter, for example) may be a view at any offset. If blocks have
   * counts of their own, the input's name is compared only where it is reduced. The reducer {@code
   * peer} compares names in the first call with a buffer.
   *
   * @param name any text, the same on all ranks, which compare all of it; errors shorten a text of
   *     more than 48 bytes of UTF-8 to its beginning, its end and a hash
   * @return this buffer
   */
  default DeviceBuffer named(String name) {
    throw new UnsupportedOperationException("this buffer takes no name: buffer=" + this);
  }

  /**
   * {@return this buffer's name: that given to {@link #named}; for a view without its own name, the
   * name of the buffer that it is a view of; empty if neither has a name}
   */
  default String name() {
    return "";
  }

  /**
   * {@return a view of a part of this buffer, without a copy} It becomes invalid when this buffer
   * is closed. Closing the view does not close this buffer.
   *
   * @param offset the first element, from 0 to count
   * @param count the number of elements, from 0 to count minus offset
   * @throws IndexOutOfBoundsException if the part is not within this buffer
   */
  DeviceBuffer slice(long offset, long count);

  /**
   * {@return the elements in place, from 0 to {@link #sizeInBytes()}, in native byte order} For
   * code that computes them in Java, where the device is the host; {@link #floats()} and similar
   * views count elements. The next call of a sync reads and writes them here. Do not touch them
   * during a call, or after this buffer or its parent is closed: writes may be lost or change
   * another buffer, and reading memory that was shared with other processes can throw an {@link
   * InternalError}.
   *
   * @throws UnsupportedOperationException if the elements are on another device, or lie in several
   *     segments of the host's memory (only buffers above 1 GiB have several, see {@link
   *     #hostSegments})
   */
  default ByteBuffer hostMemory() {
    throw new UnsupportedOperationException(
        "buffer is not in host memory: buffer=" + this + "; use copyTo and copyFrom");
  }

  /**
   * The parts of this buffer that have {@link #hostMemory}, {@link #floats()} and so on: for code
   * that computes elements of any buffer in host memory in Java. Their number and sizes may differ
   * between ranks.
   *
   * @return views in the order of the elements, none of them empty, which together have all {@link
   *     #count()} elements: one for most buffers, several of at most 1 GiB for larger ones, none
   *     for an empty one. They are valid as long as those of {@link #slice}, and need not be closed
   * @throws UnsupportedOperationException if the elements are on another device
   */
  default List<DeviceBuffer> hostSegments() {
    hostMemory(); // throws if there is none
    return count() == 0 ? List.of() : List.of(slice(0, count()));
  }

  /**
   * {@return {@link #hostMemory()} as the elements of a FLOAT32 buffer, from 0 to {@link #count()}}
   *
   * @throws UnsupportedOperationException as there, and if the elements are of another type
   */
  default FloatBuffer floats() {
    requireElements("floats", DataType.FLOAT32);
    return hostMemory().asFloatBuffer();
  }

  /**
   * {@return {@link #hostMemory()} as the elements of a FLOAT64 buffer, from 0 to {@link #count()}}
   *
   * @throws UnsupportedOperationException as there, and if the elements are of another type
   */
  default DoubleBuffer doubles() {
    requireElements("doubles", DataType.FLOAT64);
    return hostMemory().asDoubleBuffer();
  }

  /**
   * {@return {@link #hostMemory()} as the elements of a FLOAT16 or BFLOAT16 buffer, the raw bits of
   * 16-bit floats, from 0 to {@link #count()}}
   *
   * @throws UnsupportedOperationException as there, and if the elements are of another type
   */
  default ShortBuffer shorts() {
    requireElements("shorts", DataType.FLOAT16, DataType.BFLOAT16);
    return hostMemory().asShortBuffer();
  }

  /**
   * {@return {@link #hostMemory()} as the elements of an INT32 buffer, from 0 to {@link #count()}}
   *
   * @throws UnsupportedOperationException as there, and if the elements are of another type
   */
  default IntBuffer ints() {
    requireElements("ints", DataType.INT32);
    return hostMemory().asIntBuffer();
  }

  /**
   * {@return {@link #hostMemory()} as the elements of an INT64 buffer, from 0 to {@link #count()}}
   *
   * @throws UnsupportedOperationException as there, and if the elements are of another type
   */
  default LongBuffer longs() {
    requireElements("longs", DataType.INT64);
    return hostMemory().asLongBuffer();
  }

  /** Sets all elements to zero. Ordered on the buffer's stream. */
  void fillZero();

  /**
   * Copies from a Java buffer: a {@code FloatBuffer} for FLOAT32, {@code DoubleBuffer} for FLOAT64,
   * {@code ShortBuffer} with the raw bits for FLOAT16 and BFLOAT16, {@code IntBuffer} for INT32,
   * {@code LongBuffer} for INT64, or, for any type, a {@code ByteBuffer} in native byte order. The
   * call does not change the source's position, and the source may be changed as soon as it
   * returns. On a GPU it may block while earlier copies still use the staging memory.
   *
   * @param source a buffer with exactly {@link #count()} elements between position and limit
   * @throws IllegalArgumentException if its type or length does not match
   * @throws GradientSyncException as for {@link #copyTo(Buffer)}, if the call had to wait
   */
  void copyFrom(Buffer source);

  /**
   * Waits for the values and copies them into a Java buffer. Takes the same types as {@link
   * #copyFrom(Buffer)} and does not change the target's position.
   *
   * @param target writable, with exactly {@link #count()} elements between position and limit
   * @throws IllegalArgumentException if its type or length does not match
   * @throws GradientSyncException if a call on the device has failed since the host last waited for
   *     it, for example with a {@link MismatchedCallException} or {@link RankLostException}; thrown
   *     once for each failure
   */
  void copyTo(Buffer target);

  /**
   * {@link #copyFrom(Buffer)} of a whole array into a FLOAT32 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   */
  default void copyFrom(float[] source) {
    copyFrom(FloatBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  /**
   * {@link #copyFrom(Buffer)} of a whole array into a FLOAT64 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   */
  default void copyFrom(double[] source) {
    copyFrom(DoubleBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  /**
   * {@link #copyFrom(Buffer)} of a whole array of raw bits into a FLOAT16 or BFLOAT16 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   */
  default void copyFrom(short[] source) {
    copyFrom(ShortBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  /**
   * {@link #copyFrom(Buffer)} of a whole array into an INT32 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   */
  default void copyFrom(int[] source) {
    copyFrom(IntBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  /**
   * {@link #copyFrom(Buffer)} of a whole array into an INT64 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   */
  default void copyFrom(long[] source) {
    copyFrom(LongBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  /**
   * {@link #copyTo(Buffer)} of a FLOAT32 buffer into a whole array.
   *
   * @param target an array of exactly {@link #count()} elements
   */
  default void copyTo(float[] target) {
    copyTo(FloatBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  /**
   * {@link #copyTo(Buffer)} of a FLOAT64 buffer into a whole array.
   *
   * @param target an array of exactly {@link #count()} elements
   */
  default void copyTo(double[] target) {
    copyTo(DoubleBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  /**
   * {@link #copyTo(Buffer)} of the raw bits of a FLOAT16 or BFLOAT16 buffer into a whole array.
   *
   * @param target an array of exactly {@link #count()} elements
   */
  default void copyTo(short[] target) {
    copyTo(ShortBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  /**
   * {@link #copyTo(Buffer)} of an INT32 buffer into a whole array.
   *
   * @param target an array of exactly {@link #count()} elements
   */
  default void copyTo(int[] target) {
    copyTo(IntBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  /**
   * {@link #copyTo(Buffer)} of an INT64 buffer into a whole array.
   *
   * @param target an array of exactly {@link #count()} elements
   */
  default void copyTo(long[] target) {
    copyTo(LongBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  /**
   * {@return whether this buffer, the buffer it is a view of, or its device has been closed, so
   * that it can no longer be used}
   */
  boolean isClosed();

  /**
   * Frees the memory if this library allocated it. On a GPU it first waits for the work enqueued
   * for this buffer. A second call does nothing.
   *
   * @throws GradientSyncException if a call of the sync has failed on the device in the meantime;
   *     the memory is freed nevertheless
   */
  @Override
  void close();

  private void requireElements(String view, DataType... types) {
    if (!Arrays.asList(types).contains(type())) {
      String right =
          switch (type()) {
            case FLOAT32 -> "floats";
            case FLOAT64 -> "doubles";
            case FLOAT16, BFLOAT16 -> "shorts";
            case INT32 -> "ints";
            case INT64 -> "longs";
          };
      throw new UnsupportedOperationException(
          "elements are of another type: view=%s, buffer=%s; use %s()"
              .formatted(view, this, right));
    }
  }
}

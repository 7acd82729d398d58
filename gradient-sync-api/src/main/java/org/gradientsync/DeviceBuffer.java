package org.gradientsync;

import java.nio.Buffer;

/**
 * Where gradients live: a typed run of elements in a device's memory.
 *
 * <p>A buffer belongs to its device's stream of work. On a GPU {@link #copyFrom} and the
 * collectives take effect in the order in which they were called; {@link #copyTo} waits until the
 * values are there. On the host every call is finished when it returns.
 *
 * <p>A buffer is not safe for use by several threads at a time.
 */
public interface DeviceBuffer extends AutoCloseable {
  /**
   * The element type.
   *
   * @return the type given at allocation
   */
  DataType type();

  /**
   * The number of elements.
   *
   * @return 0 or more; may exceed 2^31
   */
  long count();

  /**
   * The number of bytes that the elements take.
   *
   * @return count times the size of the type
   */
  default long sizeInBytes() {
    return count() * type().sizeInBytes();
  }

  /**
   * The device whose memory this is.
   *
   * @return the device that made the buffer
   */
  Device device();

  /**
   * Gives this buffer a name, by which errors and reports call it on all ranks, and by which the
   * ranks know that they mean the same one: calls about buffers with other names do not match, nor
   * calls about views that have the name of their buffer and lie in it at other offsets. A buffer
   * without a name goes with any.
   *
   * @param name any text, alike on all ranks, which compare all of it; errors show a text of more
   *     than 48 bytes of UTF-8 by its beginning, its end and a hash
   * @return this buffer
   */
  default DeviceBuffer named(String name) {
    throw new UnsupportedOperationException("this buffer takes no name: buffer=" + this);
  }

  /**
   * The name given.
   *
   * @return as in {@link #named}, or that of the buffer that this is a view of; an empty text if
   *     nobody gave one
   */
  default String name() {
    return "";
  }

  /**
   * A view of a part of this buffer: no copy, and it ends with this buffer. Closing a view closes
   * only the view.
   *
   * @param offset the first element, from 0 to count
   * @param count the number of elements, from 0 to count minus offset
   * @return the view
   * @throws IndexOutOfBoundsException if the part does not lie in this buffer
   * @throws IllegalStateException if this buffer is closed
   */
  DeviceBuffer slice(long offset, long count);

  /**
   * Sets all elements to zero, in order with other work on this buffer.
   *
   * @throws IllegalStateException if this buffer is closed
   */
  void fillZero();

  /**
   * Copies from a Java buffer: a {@code FloatBuffer} for FLOAT32, {@code DoubleBuffer} for FLOAT64,
   * {@code ShortBuffer} with the raw bits for FLOAT16 and BFLOAT16, {@code IntBuffer} for INT32,
   * {@code LongBuffer} for INT64, or for any type a {@code ByteBuffer} in native byte order. The
   * source's position stays where it is, and the source may be changed when the call returns. On a
   * GPU it waits where earlier copies still use the memory that all copies go by way of.
   *
   * @param source a buffer with exactly {@link #count()} elements between position and limit
   * @throws IllegalArgumentException if its type or length does not match
   * @throws IllegalStateException if this buffer is closed
   * @throws GradientSyncException as {@link #copyTo(Buffer)}, if it has waited
   */
  void copyFrom(Buffer source);

  /**
   * Copies into a Java buffer, waiting for the values first. The types are those of {@link
   * #copyFrom(Buffer)}; the target's position stays where it is.
   *
   * @param target a writable buffer with exactly {@link #count()} elements between position and
   *     limit
   * @throws IllegalArgumentException if its type or length does not match
   * @throws IllegalStateException if this buffer is closed
   * @throws GradientSyncException once, if a call on the device has failed since the host waited
   *     last: {@link MismatchedCallException} or {@link RankLostException}
   */
  void copyTo(Buffer target);

  /**
   * Copies a whole array into a FLOAT32 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyFrom(float[] source);

  /**
   * Copies a whole array into a FLOAT64 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyFrom(double[] source);

  /**
   * Copies a whole array of raw 16-bit floats into a FLOAT16 or BFLOAT16 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyFrom(short[] source);

  /**
   * Copies a whole array into an INT32 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyFrom(int[] source);

  /**
   * Copies a whole array into an INT64 buffer.
   *
   * @param source an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyFrom(long[] source);

  /**
   * Copies a FLOAT32 buffer into an array.
   *
   * @param target an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyTo(float[] target);

  /**
   * Copies a FLOAT64 buffer into an array.
   *
   * @param target an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyTo(double[] target);

  /**
   * Copies the raw bits of a FLOAT16 or BFLOAT16 buffer into an array.
   *
   * @param target an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyTo(short[] target);

  /**
   * Copies an INT32 buffer into an array.
   *
   * @param target an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyTo(int[] target);

  /**
   * Copies an INT64 buffer into an array.
   *
   * @param target an array of exactly {@link #count()} elements
   * @throws IllegalArgumentException if the type or length does not match
   */
  void copyTo(long[] target);

  /**
   * Whether this buffer, the buffer it is a view of, or its device has been closed.
   *
   * @return true if it can no longer be used
   */
  boolean isClosed();

  /**
   * Gives the memory back, if this library allocated it. On a GPU it waits for what has been
   * enqueued for this buffer. A second call does nothing.
   *
   * @throws GradientSyncException if a call of the sync turns out to have failed meanwhile; the
   *     memory is given back all the same
   */
  @Override
  void close();
}

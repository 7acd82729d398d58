package org.gradientsync.spi;

import java.util.List;
import java.util.Objects;
import org.gradientsync.DataType;
import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;

/**
 * A backend's device, with the operations that reducers need. An operation is ordered on the stream
 * of the buffer that it changes, or without one on the device's own stream, and may return before
 * the work is done. {@link #reduce}, {@link #accumulate}, {@link #finish}, {@link #copy} and {@link
 * #convert} allocate nothing.
 */
public interface BackendDevice extends Device, AutoCloseable {
  @Override
  AbstractDeviceBuffer allocate(DataType type, long count);

  /**
   * Throws an {@link IllegalArgumentException} if no buffer can have this many elements: if the
   * count is negative, or its bytes do not fit a long.
   *
   * @param type the element type
   * @param count the number of elements
   */
  static void requireCount(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    if (count < 0) {
      throw new IllegalArgumentException("count is negative: type=" + type + ", count=" + count);
    }
    if (count > Long.MAX_VALUE / type.sizeInBytes()) {
      throw new IllegalArgumentException("count is too large: type=" + type + ", count=" + count);
    }
  }

  /**
   * Reduces element by element, with the bits that {@link ReduceOp} promises.
   *
   * @param sources one buffer per rank in rank order, all with the target's type and count
   * @param target the buffer for the result; may be one of the sources
   * @param op the reduction; AVERAGE divides by the number of sources
   */
  void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op);

  /**
   * Continues a reduction that passes from node to node in rank order.
   *
   * @param running the reduction over all ranks before, of the sources' {@linkplain
   *     org.gradientsync.DataType#accumulator accumulator type}; null if there are none
   * @param sources the buffers of the next ranks in rank order, one or more
   * @param target receives the reduction so far, in the accumulator type; may be {@code running}
   * @param op the reduction; AVERAGE adds, {@link #finish} divides
   */
  void accumulate(DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op);

  /**
   * Ends a reduction that passes from node to node, with the bits of {@link #reduce}.
   *
   * @param running the reduction over all ranks before, of the accumulator type; null if none
   * @param sources the buffers of the last ranks in rank order, one or more
   * @param target receives the result; may be one of the sources
   * @param op the reduction
   * @param ranks the number of all ranks, by which AVERAGE divides
   */
  void finish(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op, int ranks);

  /**
   * Copies all elements, bit by bit.
   *
   * @param source a buffer of this device
   * @param target a buffer of this device with the source's type and count, not overlapping it
   */
  void copy(DeviceBuffer source, DeviceBuffer target);

  /**
   * Copies several buffers, as {@link #copy} does, in any order or all at once. All targets belong
   * to one stream.
   *
   * @param sources buffers of this device
   * @param targets one for each source, none of which overlaps another buffer of this call
   */
  default void copyAll(DeviceBuffer[] sources, DeviceBuffer[] targets) {
    for (int i = 0; i < sources.length; i++) {
      copy(sources[i], targets[i]);
    }
  }

  /**
   * {@return the size of the largest buffer that grouped calls copy into a common one, because a
   * call of its own would cost more than the copies, in bytes; 64 KiB unless a device knows better}
   * All ranks' devices return the same.
   */
  default long packsUpTo() {
    return 64 << 10;
  }

  /**
   * Blocks the host until all work enqueued on a buffer's stream so far is done.
   *
   * @param buffer a buffer of this device
   */
  void await(DeviceBuffer buffer);

  /**
   * {@return the device's own stream, to which a buffer belongs unless it was given another; the
   * caller must not close it}
   */
  Stream stream();

  /**
   * {@return a new stream, which the caller closes, for averages that overlap with the work of
   * {@link #stream()}, such as a backward pass} Its work has a higher priority.
   *
   * @param sparing whether its work may use only a part of the device
   */
  Stream createStream(boolean sparing);

  /**
   * {@return a new event, which the caller closes}
   *
   * @param timed whether the event records its time; an event that does not is cheaper
   */
  Event createEvent(boolean timed);

  /**
   * {@return a view of a buffer that belongs to another stream, valid until the buffer is closed}
   * The caller orders the work on the two streams.
   *
   * @param stream a stream of this device
   * @param buffer a buffer of this device
   */
  DeviceBuffer on(Stream stream, DeviceBuffer buffer);

  /**
   * {@return the stream that a buffer belongs to: that given at allocation or to {@link #on}, or
   * this device's own}
   *
   * @param buffer a buffer of this device
   */
  Stream streamOf(DeviceBuffer buffer);

  /**
   * Converts all elements from FLOAT32 to a 16-bit type or back. Rounds to nearest even; values
   * that are too large become infinite, and any NaN becomes the canonical one.
   *
   * @param source a buffer of this device
   * @param target a buffer of this device with as many elements as the source; one of the two is
   *     FLOAT32, the other FLOAT16 or BFLOAT16
   * @throws IllegalArgumentException for other types, or if the counts differ
   */
  void convert(DeviceBuffer source, DeviceBuffer target);

  /**
   * Throws an {@link IllegalArgumentException} if {@link #convert} does not support the arguments.
   *
   * @param source the buffer to read
   * @param target the buffer to write
   */
  static void requireConvertible(DeviceBuffer source, DeviceBuffer target) {
    DataType other = source.type() == DataType.FLOAT32 ? target.type() : source.type();
    if (source.type() == target.type()
        || source.type() != DataType.FLOAT32 && target.type() != DataType.FLOAT32
        || other.sizeInBytes() != Short.BYTES
        || source.count() != target.count()) {
      throw new IllegalArgumentException("cannot convert: source=" + source + ", target=" + target);
    }
  }

  /**
   * Looks for a NaN or an infinity after the work on the buffer's stream, and waits for the result.
   *
   * @param buffer a buffer of this device
   * @return the index of such an element, which is the first one if finding that is free; a
   *     negative number if there is none, and for integers
   */
  long firstNotFinite(DeviceBuffer buffer);

  /**
   * Adds up the squares of all elements, in double, after the work enqueued on the buffer's stream,
   * and waits for the result. The order of the additions depends on type and count only, so that
   * all devices of this kind get the same bits for the same elements. Devices of another kind may
   * get other ones.
   *
   * @param buffer a buffer of this device, of a floating-point type
   * @return the sum; 0 if there are no elements; NaN if one is NaN, otherwise infinity if one is
   *     infinite or the sum is too large
   * @throws IllegalArgumentException for integers
   */
  double sumOfSquares(DeviceBuffer buffer);

  /**
   * Multiplies all elements by a factor: each in double, the product rounded to the buffer's type,
   * with types of 16 bits by way of FLOAT32.
   *
   * @param buffer a buffer of this device, of a floating-point type
   * @param factor a finite factor
   * @throws IllegalArgumentException for integers
   */
  void scale(DeviceBuffer buffer, double factor);

  /**
   * Multiplies two row-major matrices (BLAS's gemm): C = alpha op(A) op(B) + beta C, where op(A) is
   * rows by inner, op(B) inner by columns, and C rows by columns. All three belong to one stream.
   * Each rounding of a sum is the device's own choice; see {@link #products}.
   *
   * @param alpha a factor
   * @param a rows times inner elements
   * @param transposeA false if A is rows by inner; true if A is inner by rows, and op(A) is A
   *     transposed
   * @param b inner times columns elements
   * @param transposeB false if B is inner by columns; true if B is columns by inner, and op(B) is B
   *     transposed
   * @param beta a factor; 0 overwrites C, whatever it contains, and 1 adds the product to it
   * @param c rows times columns elements; must not overlap a or b
   * @param rows the rows of op(A) and C, 0 or more
   * @param inner the columns of op(A) and rows of op(B), 0 or more
   * @param columns the columns of op(B) and C, 0 or more
   * @throws IllegalArgumentException if a buffer has another number of elements, has another type
   *     than c or is neither FLOAT32 nor FLOAT64
   */
  void multiply(
      double alpha,
      DeviceBuffer a,
      boolean transposeA,
      DeviceBuffer b,
      boolean transposeB,
      double beta,
      DeviceBuffer c,
      int rows,
      int inner,
      int columns);

  /**
   * Throws an {@link IllegalArgumentException} if {@link #multiply} does not support these sizes or
   * types, or a size is negative.
   *
   * @param a rows times inner elements
   * @param b inner times columns elements
   * @param c rows times columns elements
   * @param rows the rows of op(A) and C
   * @param inner the columns of op(A) and rows of op(B)
   * @param columns the columns of op(B) and C
   */
  static void requireMatrices(
      DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, int rows, int inner, int columns) {
    if (rows < 0 || inner < 0 || columns < 0) {
      throw new IllegalArgumentException(
          "size is negative: rows=" + rows + ", inner=" + inner + ", columns=" + columns);
    }
    requireMatrix("a", a, (long) rows * inner, c.type());
    requireMatrix("b", b, (long) inner * columns, c.type());
    requireMatrix("c", c, (long) rows * columns, c.type());
  }

  /**
   * Throws an {@link IllegalArgumentException} if {@link #multiply} and {@link #addScaled} cannot
   * take a buffer: if count or type are others, or the type is neither FLOAT32 nor FLOAT64.
   *
   * @param name the argument's name in the exception
   * @param buffer the buffer
   * @param count the number of elements that it must have
   * @param type the type that it must have
   */
  static void requireMatrix(String name, DeviceBuffer buffer, long count, DataType type) {
    boolean floats = type == DataType.FLOAT32 || type == DataType.FLOAT64;
    if (buffer.count() != count || buffer.type() != type || !floats) {
      throw new IllegalArgumentException(
          "matrix does not fit, or is neither FLOAT32 nor FLOAT64: %s=%s, expected=%s[%s]"
              .formatted(name, buffer, type, count));
    }
  }

  /**
   * Adds a multiple of a buffer to another of its stream (BLAS's axpy): y = factor x + y.
   *
   * @param factor a factor
   * @param x as many elements as y, of the same type
   * @param y the elements that are changed in place, FLOAT32 or FLOAT64
   * @throws IllegalArgumentException if the buffers do not match, or are of another type
   */
  void addScaled(double factor, DeviceBuffer x, DeviceBuffer y);

  /**
   * Adds up rows: each row of the target becomes the sum of some rows of the source, one after the
   * other in the table's order from 0 on, each sum rounded; 0 if there are none.
   *
   * @param source rows of {@code width} elements, FLOAT32
   * @param table INT32: the numbers of all rows of the source, those of the target's first row
   *     first; then for each row of the target how many of these come before its own; at the end
   *     how many there are. Not checked
   * @param width the number of elements of a row, 1 or more
   * @param target rows of {@code width} elements, FLOAT32; must not overlap the source
   * @throws IllegalArgumentException if the counts or types do not match
   */
  void sumRows(DeviceBuffer source, DeviceBuffer table, int width, DeviceBuffer target);

  /**
   * Throws an {@link IllegalArgumentException} if {@link #sumRows} does not support the arguments.
   *
   * @param source the rows to add up
   * @param table the numbers of these rows
   * @param width the number of elements of a row
   * @param target receives the sums
   */
  static void requireRows(DeviceBuffer source, DeviceBuffer table, int width, DeviceBuffer target) {
    if (source.type() != DataType.FLOAT32
        || table.type() != DataType.INT32
        || target.type() != DataType.FLOAT32
        || width < 1
        || source.count() % width != 0
        || target.count() % width != 0
        || table.count() != source.count() / width + target.count() / width + 1) {
      throw new IllegalArgumentException(
          "rows, or their table, do not fit: source=%s, table=%s, width=%s, target=%s"
              .formatted(source, table, width, target));
    }
  }

  /**
   * {@return what computes {@link #multiply} and {@link #addScaled}, with its version and hardware,
   * in one line} Devices that return the same text get the same bits for the same elements. May
   * load a library, after the work enqueued on the buffer's stream is done.
   *
   * @param buffer a buffer of this device
   */
  String products(DeviceBuffer buffer);

  /**
   * {@return a description of this device for reports, lines of text} Called by any thread,
   * possibly while the device hangs, so it must not block.
   */
  default List<String> state() {
    return List.of();
  }

  /**
   * Sets the interceptor of copies from and to buffers allocated from now on, and their views.
   *
   * @param interceptor an interceptor
   */
  void intercept(CallInterceptor interceptor);

  /**
   * {@return the interceptor of copies from and to this device's buffers, as passed to {@link
   * #intercept}, or null}
   */
  CallInterceptor interceptor();

  /**
   * Makes this device current for the calling thread, for libraries that use a GPU's current
   * context. Cheap; most devices need not do anything.
   */
  default void makeCurrent() {}

  /** {@return whether this device has been closed} */
  boolean isClosed();

  /** Releases the device. Its buffers can no longer be used. A second call does nothing. */
  @Override
  void close();
}

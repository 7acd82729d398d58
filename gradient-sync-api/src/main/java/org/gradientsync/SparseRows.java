package org.gradientsync;

import java.util.Objects;

/**
 * Some rows of a table, such as the gradient of an embedding, which a step changes in few places.
 * {@link GradientSync#average(SparseRows)} averages them without the rows that no rank has.
 * Immutable, if the program does not change the arrays that it gives and gets.
 */
public final class SparseRows {
  private final long tableRows;
  private final int width;
  private final long[] indices;
  private final float[] elements; // or null
  private final DeviceBuffer buffer; // or null

  /**
   * Creates rows.
   *
   * @param tableRows the number of rows of the whole table, 0 or more
   * @param width the number of elements of a row, 1 or more
   * @param indices the number of each row in the table, from 0, in any order; ascending is the
   *     fastest; a row that comes several times counts as the sum of what it has each time; may be
   *     empty; kept, not copied
   * @param elements the elements of these rows, one row after the other; kept, not copied
   * @throws IllegalArgumentException if an index is not below {@code tableRows}, or there are not
   *     {@code indices.length * width} elements
   */
  public SparseRows(long tableRows, int width, long[] indices, float[] elements) {
    this(tableRows, width, indices, Objects.requireNonNull(elements, "elements"), null);
  }

  /**
   * Creates rows on the device, whose average is there, too.
   *
   * @param tableRows the number of rows of the whole table, 0 or more
   * @param width the number of elements of a row, 1 or more
   * @param indices the number of each row in the table, as above
   * @param buffer the elements of these rows, FLOAT32, one row after the other; kept, not copied;
   *     of the sync that averages them, and of its device's own stream
   * @throws IllegalArgumentException as above, or if the elements have another type
   */
  public SparseRows(long tableRows, int width, long[] indices, DeviceBuffer buffer) {
    this(tableRows, width, indices, null, Objects.requireNonNull(buffer, "buffer"));
    if (buffer.type() != DataType.FLOAT32) {
      throw new IllegalArgumentException("rows must be FLOAT32: buffer=" + buffer);
    }
  }

  private SparseRows(
      long tableRows, int width, long[] indices, float[] elements, DeviceBuffer buffer) {
    this.tableRows = tableRows;
    this.width = width;
    this.indices = Objects.requireNonNull(indices, "indices");
    this.elements = elements;
    this.buffer = buffer;
    long count = buffer == null ? elements.length : buffer.count();
    if (tableRows < 0 || width < 1 || (long) indices.length * width != count) {
      throw new IllegalArgumentException(
          ("not rows of a table: tableRows=%s, width=%s, indices=%s, elements=%s;"
                  + " give width elements for each index")
              .formatted(tableRows, width, indices.length, count));
    }
    for (int i = 0; i < indices.length; i++) {
      if (indices[i] < 0 || indices[i] >= tableRows) {
        throw new IllegalArgumentException(
            "no such row: indices[%s]=%s, tableRows=%s; rows count from 0"
                .formatted(i, indices[i], tableRows));
      }
    }
  }

  /** {@return the number of rows of the whole table, 0 or more} */
  public long tableRows() {
    return tableRows;
  }

  /** {@return the number of elements of a row, 1 or more} */
  public int width() {
    return width;
  }

  /**
   * {@return the number of each row in the table, not a copy; in ascending order, and each row
   * once, if this is an average}
   */
  public long[] indices() {
    return indices;
  }

  /**
   * {@return the elements, one row after the other, not a copy; {@code indices().length * width()}
   * elements; null if they are in a {@link #buffer}}
   */
  public float[] elements() {
    return elements;
  }

  /**
   * {@return the elements on the device, one row after the other, {@code indices().length *
   * width()} elements; null if they are in an array}
   */
  public DeviceBuffer buffer() {
    return buffer;
  }

  @Override
  public String toString() {
    return "SparseRows[" + indices.length + " of " + tableRows + ", width=" + width + "]";
  }
}

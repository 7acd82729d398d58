package org.gradientsync.examples;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.tools.program.Elements;

/**
 * Gradients with a known average: element i of a rank is rank + i / 1000, rounded to the type.
 *
 * <p>This class computes the average itself, with the arithmetic that the library promises but none
 * of its code. So tests can compare every element bit by bit.
 */
final class Gradients {
  private final DataType type;
  private final int ranks;
  private final Elements elements;

  /**
   * Creates the gradients of one rank. Not thread-safe.
   *
   * @param type a floating-point type
   * @param ranks how many ranks are averaged
   */
  Gradients(DataType type, int ranks) {
    this.type = type;
    this.ranks = ranks;
    elements = new Elements(type);
  }

  /** The result of checking one buffer. */
  record Check(long wrong, long firstWrong, double averaged, double expected) {
    static final Check NOTHING_WRONG = new Check(0, -1, 0, 0);

    boolean passed() {
      return wrong == 0;
    }
  }

  /**
   * Computes a rank's gradient. In a real program a GPU would do this.
   *
   * @param buffer receives the gradient
   * @param rank the rank's number
   */
  void compute(DeviceBuffer buffer, int rank) {
    for (long first = 0; first < buffer.count(); first += Elements.MOST) {
      int count = Elements.count(buffer, first);
      for (int i = 0; i < count; i++) {
        elements.put(i, gradient(rank, first + i));
      }
      elements.copyTo(buffer, first, count);
    }
  }

  /**
   * Compares every element with the average.
   *
   * @param buffer the averaged gradient
   * @return the number of wrong elements, and the first one
   */
  Check check(DeviceBuffer buffer) {
    Check found = Check.NOTHING_WRONG;
    for (long first = 0; first < buffer.count(); first += Elements.MOST) {
      int count = Elements.count(buffer, first);
      elements.copyFrom(buffer, first, count);
      for (int i = 0; i < count; i++) {
        long averaged = elements.get(i);
        long expected = average(first + i);
        if (averaged != expected) {
          found =
              found.passed()
                  ? new Check(1, first + i, value(averaged), value(expected))
                  : new Check(found.wrong + 1, found.firstWrong, found.averaged, found.expected);
        }
      }
    }
    return found;
  }

  /** Reads one element of a buffer as a number. */
  double read(DeviceBuffer buffer, long index) {
    elements.copyFrom(buffer, index, 1);
    return value(elements.get(0));
  }

  /** Returns an element's expected average as a number. */
  double expected(long index) {
    return value(average(index));
  }

  /** Returns the bits of an element of one rank. */
  long gradient(int rank, long index) {
    return round(rank + index / 1000.0);
  }

  /** Returns the bits of the average: added in rank order in the accumulator type, rounded once. */
  long average(long index) {
    return type == DataType.FLOAT64 ? averageInDouble(index) : averageInFloat(index);
  }

  private long averageInDouble(long index) {
    double sum = value(gradient(0, index));
    for (int rank = 1; rank < ranks; rank++) {
      sum += value(gradient(rank, index));
    }
    return round(sum / ranks);
  }

  private long averageInFloat(long index) {
    float sum = (float) value(gradient(0, index)); // exact: no type here is wider than a float
    for (int rank = 1; rank < ranks; rank++) {
      sum += (float) value(gradient(rank, index));
    }
    return round(sum / ranks);
  }

  private long round(double value) {
    return Elements.bits(type, value);
  }

  private double value(long bits) {
    return Elements.value(type, bits);
  }
}

package org.gradientsync.tools.perf;

import java.util.function.LongUnaryOperator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.tools.program.Elements;

/**
 * Numbers between -2 and 2 that differ by rank and index, and the expected results of reducing
 * them. This class computes the results from the definition in {@link ReduceOp}, and shares only
 * the 16-bit conversions with the library. So every element can be compared bit by bit. Not
 * thread-safe.
 */
final class PerfNumbers {
  private static final long INT_BITS = 0xffffffffL;

  private final DataType type;
  private final ReduceOp op;
  private final int ranks;
  private final DataType wire;
  private final Elements elements;

  /**
   * Creates numbers.
   *
   * @param wire the 16-bit type in which FLOAT32 sums and averages travel, or null
   */
  PerfNumbers(DataType type, ReduceOp op, int ranks, DataType wire) {
    boolean narrows =
        type == DataType.FLOAT32 && ranks > 1 && (op == ReduceOp.SUM || op == ReduceOp.AVERAGE);
    this.wire = narrows ? wire : null;
    this.type = type;
    this.op = op;
    this.ranks = ranks;
    elements = new Elements(type);
  }

  /** Writes a rank's numbers. */
  void fill(DeviceBuffer buffer, int rank) {
    for (long first = 0; first < buffer.count(); first += Elements.MOST) {
      int count = Elements.count(buffer, first);
      for (int i = 0; i < count; i++) {
        elements.put(i, bits(rank, first + i));
      }
      elements.copyTo(buffer, first, count);
    }
  }

  /**
   * Counts the elements whose bits differ from what is expected.
   *
   * @param expected the bits of an element, by its index
   */
  long wrong(DeviceBuffer buffer, LongUnaryOperator expected) {
    long wrong = 0;
    for (long first = 0; first < buffer.count(); first += Elements.MOST) {
      int count = Elements.count(buffer, first);
      elements.copyFrom(buffer, first, count);
      for (int i = 0; i < count; i++) {
        wrong += elements.get(i) == expected.applyAsLong(first + i) ? 0 : 1;
      }
    }
    return wrong;
  }

  /** Returns the bits of a rank's element. */
  long bits(int rank, long index) {
    long hash = (index + 1) * 0x9E3779B97F4A7C15L ^ (rank + 1) * 0xD1B54A32D192ED03L;
    hash = (hash ^ hash >>> 30) * 0xBF58476D1CE4E5B9L;
    hash = (hash ^ hash >>> 27) * 0x94D049BB133111EBL;
    hash ^= hash >>> 31;
    return switch (type) {
      case FLOAT64 -> Double.doubleToRawLongBits((hash >> 11) * 0x1p-52);
      case INT32 -> hash & INT_BITS;
      case INT64 -> hash;
      default -> Elements.bits(type, (hash >> 32) * 0x1p-30f);
    };
  }

  /** Returns the bits of an element after a number of reductions. */
  long reduced(long index, int times) {
    return switch (type) {
      case INT32 -> reducedLong(index, times) & INT_BITS;
      case INT64 -> reducedLong(index, times);
      default -> Elements.bits(type, reducedDouble(index, times));
    };
  }

  private double reducedDouble(long index, int times) {
    double result = 0;
    for (int time = 0; time < times; time++) {
      double sum = time == 0 ? number(0, index) : result;
      for (int rank = 1; rank < ranks; rank++) {
        sum = rounded(combine(sum, time == 0 ? number(rank, index) : result));
      }
      double mean = op == ReduceOp.AVERAGE ? rounded(sum / ranks) : sum;
      double stored = onWire(Elements.value(type, Elements.bits(type, mean)));
      if (time > 0 && stored == result) {
        break; // later reductions do not change it
      }
      result = stored;
    }
    return result;
  }

  private double number(int rank, long index) {
    return onWire(Elements.value(type, bits(rank, index)));
  }

  private double onWire(double value) {
    return wire == null ? value : Elements.value(wire, Elements.bits(wire, value));
  }

  /** Rounds to the accumulator's type: what doubles give is rounded once only. */
  private double rounded(double value) {
    return type == DataType.FLOAT64 ? value : (float) value;
  }

  /** Computes INT32, too: the lower half is right if the operands are sign-extended. */
  private long reducedLong(long index, int times) {
    long result = 0;
    for (int time = 0; time < times; time++) {
      long sum = time == 0 ? toLong(bits(0, index)) : result;
      for (int rank = 1; rank < ranks; rank++) {
        sum = combine(sum, time == 0 ? toLong(bits(rank, index)) : result);
      }
      result = toLong(sum);
    }
    return result;
  }

  private double combine(double a, double b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }

  private long combine(long a, long b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }

  private long toLong(long bits) {
    return type == DataType.INT32 ? (int) bits : bits;
  }
}

package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.util.Arrays;
import org.gradientsync.ReduceOp;

/** Accumulates in float64. */
final class DoubleAccumulator extends Accumulator {
  private final double[] sum = new double[BLOCK];
  private final double[] next = new double[BLOCK];
  private final double[] taint = new double[BLOCK];
  private int tainted; // elements of taint that are in use
  private final DoubleBuffer result = DoubleBuffer.wrap(sum);
  private final DoubleBuffer incoming = DoubleBuffer.wrap(next);

  @Override
  Buffer first() {
    return result;
  }

  @Override
  Buffer incoming() {
    return incoming;
  }

  @Override
  void combine(ReduceOp op, int count) {
    switch (op) {
      case SUM, AVERAGE -> {
        for (int i = 0; i < count; i++) {
          sum[i] += next[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < count; i++) {
          sum[i] = Math.min(sum[i], next[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < count; i++) {
          sum[i] = Math.max(sum[i], next[i]);
        }
      }
      case PROD -> {
        for (int i = 0; i < count; i++) {
          sum[i] *= next[i];
        }
      }
    }
  }

  @Override
  Buffer finish(ReduceOp op, int ranks, int count) {
    if (op == ReduceOp.AVERAGE) {
      addAndDivide(sum, next, ranks, count);
    } else {
      combine(op, count);
    }
    taint(sum, taint, count);
    tainted = Math.max(tainted, count);
    return result;
  }

  @Override
  Buffer round(ReduceOp op, int ranks, int count) {
    if (op == ReduceOp.AVERAGE) {
      divide(sum, ranks, count);
    }
    taint(sum, taint, count);
    tainted = Math.max(tainted, count);
    return result;
  }

  private static void divide(double[] sum, double divisor, int count) {
    for (int i = 0; i < count; i++) {
      sum[i] /= divisor;
    }
  }

  private static void addAndDivide(double[] sum, double[] next, double divisor, int count) {
    for (int i = 0; i < count; i++) {
      sum[i] = (sum[i] + next[i]) / divisor;
    }
  }

  /** See FloatAccumulator. */
  private static void taint(double[] block, double[] taint, int count) {
    for (int i = 0; i < count; i++) {
      taint[i] += block[i] * 0.0;
    }
  }

  @Override
  boolean takeMaybeNaN() {
    if (tainted > BLOCK / 4) {
      addHalves(taint, BLOCK / 2);
      addHalves(taint, BLOCK / 4);
    }
    addHalves(taint, BLOCK / 8);
    addHalves(taint, BLOCK / 16);
    addHalves(taint, BLOCK / 32);
    tainted = 0;
    double even = 0;
    double odd = 0;
    for (int i = 0; i < BLOCK / 32; i += 2) {
      even += taint[i];
      odd += taint[i + 1];
    }
    if (even + odd == 0) {
      return false;
    }
    Arrays.fill(taint, 0); // NaN is not equal to zero
    return true;
  }

  private static void addHalves(double[] values, int half) {
    for (int i = 0; i < half; i++) {
      values[i] += values[i + half];
    }
  }

  @Override
  Buffer canonicalize(int count) {
    double[] block = next;
    for (int i = 0; i < count; i++) {
      block[i] = Double.longBitsToDouble(Double.doubleToLongBits(block[i]));
    }
    return incoming;
  }
}

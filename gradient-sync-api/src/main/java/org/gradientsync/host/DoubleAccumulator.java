package org.gradientsync.host;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import org.gradientsync.ReduceOp;

/** Accumulates in float64. */
final class DoubleAccumulator extends Accumulator {
  private final double[] sum = new double[BLOCK];
  private final double[] next = new double[BLOCK];
  private final DoubleBuffer result = DoubleBuffer.wrap(sum);
  private final DoubleBuffer incoming = DoubleBuffer.wrap(next);

  @Override
  Buffer incoming() {
    return incoming;
  }

  @Override
  void load(int count) {
    System.arraycopy(next, 0, sum, 0, count);
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
      double divisor = ranks;
      for (int i = 0; i < count; i++) {
        sum[i] /= divisor;
      }
    }
    canonicalize(count);
    return result;
  }

  /** See the same method of FloatAccumulator for why. */
  private void canonicalize(int count) {
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < count; i++) {
      max = Math.max(max, sum[i]);
    }
    if (Double.isNaN(max)) {
      for (int i = 0; i < count; i++) {
        sum[i] = Double.longBitsToDouble(Double.doubleToLongBits(sum[i]));
      }
    }
  }
}

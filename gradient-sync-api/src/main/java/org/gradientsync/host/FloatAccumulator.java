package org.gradientsync.host;

import java.nio.Buffer;
import java.nio.FloatBuffer;
import org.gradientsync.ReduceOp;

/** Accumulates in float32. */
class FloatAccumulator extends Accumulator {
  final float[] sum = new float[BLOCK];
  final float[] next = new float[BLOCK];
  private final FloatBuffer result = FloatBuffer.wrap(sum);
  private final FloatBuffer incoming = FloatBuffer.wrap(next);

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
      float divisor = ranks;
      for (int i = 0; i < count; i++) {
        sum[i] /= divisor;
      }
    }
    canonicalize(count);
    return result;
  }

  /**
   * Which NaN comes out of an operation on NaNs depends on the order of the operands, which the JIT
   * compiler is free to swap; one canonical NaN is what makes the bits repeatable. The maximum is
   * NaN if any element is, and it vectorizes, so blocks without NaN pay little.
   */
  private void canonicalize(int count) {
    float max = Float.NEGATIVE_INFINITY;
    for (int i = 0; i < count; i++) {
      max = Math.max(max, sum[i]);
    }
    if (Float.isNaN(max)) {
      for (int i = 0; i < count; i++) {
        sum[i] = Float.intBitsToFloat(Float.floatToIntBits(sum[i]));
      }
    }
  }
}

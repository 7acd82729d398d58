package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import org.gradientsync.ReduceOp;

/** Accumulates in float32. */
class FloatAccumulator extends Accumulator {
  final float[] sum = new float[BLOCK];
  final float[] next = new float[BLOCK];
  private final float[] taint = new float[BLOCK];
  private int tainted; // elements of taint that are in use
  private final FloatBuffer result = FloatBuffer.wrap(sum);
  private final FloatBuffer incoming = FloatBuffer.wrap(next);

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

  private static void divide(float[] sum, float divisor, int count) {
    for (int i = 0; i < count; i++) {
      sum[i] /= divisor;
    }
  }

  private static void addAndDivide(float[] sum, float[] next, float divisor, int count) {
    for (int i = 0; i < count; i++) {
      sum[i] = (sum[i] + next[i]) / divisor;
    }
  }

  /**
   * Records whether an element may be NaN: its product with zero is zero, or NaN for NaN and
   * infinities. The JIT compiler vectorizes this loop; with a branch it would take ten times as
   * long.
   */
  private static void taint(float[] block, float[] taint, int count) {
    for (int i = 0; i < count; i++) {
      taint[i] += block[i] * 0f;
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
    float even = 0;
    float odd = 0;
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

  private static void addHalves(float[] values, int half) {
    for (int i = 0; i < half; i++) {
      values[i] += values[i + half];
    }
  }

  @Override
  Buffer canonicalize(int count) {
    float[] block = next;
    for (int i = 0; i < count; i++) {
      block[i] = Float.intBitsToFloat(Float.floatToIntBits(block[i]));
    }
    return incoming;
  }
}

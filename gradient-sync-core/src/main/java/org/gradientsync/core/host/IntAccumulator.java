package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.IntBuffer;
import org.gradientsync.ReduceOp;

/** Accumulates 32-bit integers, wrapping around. */
final class IntAccumulator extends Accumulator {
  private final int[] sum = new int[BLOCK];
  private final int[] next = new int[BLOCK];
  private final IntBuffer result = IntBuffer.wrap(sum);
  private final IntBuffer incoming = IntBuffer.wrap(next);

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
      case SUM -> {
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
      default -> throw new IllegalArgumentException("not defined for integers: op=" + op);
    }
  }
}

package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.LongBuffer;
import org.gradientsync.ReduceOp;

/** Accumulates 64-bit integers, wrapping around. */
final class LongAccumulator extends Accumulator {
  private final long[] sum = new long[BLOCK];
  private final long[] next = new long[BLOCK];
  private final LongBuffer result = LongBuffer.wrap(sum);
  private final LongBuffer incoming = LongBuffer.wrap(next);

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

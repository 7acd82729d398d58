package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.Float16;
import org.gradientsync.ReduceOp;

/** Accumulates 16-bit floats in float32 and rounds once at the end. */
final class HalfAccumulator extends FloatAccumulator {
  private final boolean brain;
  private final short[] bits = new short[BLOCK];
  private final ShortBuffer halves = ShortBuffer.wrap(bits);
  private final FloatBuffer floats = FloatBuffer.wrap(sum);

  HalfAccumulator(DataType type) {
    this.brain = type == DataType.BFLOAT16;
  }

  @Override
  Buffer first() {
    return halves;
  }

  @Override
  Buffer incoming() {
    return halves;
  }

  @Override
  Buffer running() {
    return floats;
  }

  @Override
  void begin(int count) {
    decode(sum, count);
  }

  @Override
  void combineNext(ReduceOp op, int count) {
    decode(next, count);
    combine(op, count);
  }

  @Override
  Buffer finish(ReduceOp op, int ranks, int count) {
    decode(next, count);
    super.finish(op, ranks, count);
    return narrow(count);
  }

  @Override
  Buffer round(ReduceOp op, int ranks, int count) {
    super.round(op, ranks, count);
    return narrow(count);
  }

  /** The float32 input of {@link #narrow}. */
  FloatBuffer wide() {
    return floats;
  }

  /** Rounds {@link #wide} to 16 bits. */
  ShortBuffer narrow(int count) {
    if (brain) {
      for (int i = 0; i < count; i++) {
        bits[i] = BFloat16.fromFloat(sum[i]);
      }
    } else {
      for (int i = 0; i < count; i++) {
        bits[i] = Float16.fromFloat(sum[i]);
      }
    }
    return halves;
  }

  /** Converts {@link #incoming} to float32. */
  FloatBuffer widen(int count) {
    decode(sum, count);
    for (int i = 0; i < count; i++) {
      if (sum[i] != sum[i]) {
        sum[i] = Float.NaN; // the canonical one
      }
    }
    return floats;
  }

  private void decode(float[] target, int count) {
    if (brain) {
      for (int i = 0; i < count; i++) {
        target[i] = BFloat16.toFloat(bits[i]);
      }
    } else {
      for (int i = 0; i < count; i++) {
        target[i] = Float16.toFloat(bits[i]);
      }
    }
  }

  @Override
  boolean takeMaybeNaN() {
    super.takeMaybeNaN();
    return false; // rounding to 16 bits makes every NaN the canonical one
  }
}

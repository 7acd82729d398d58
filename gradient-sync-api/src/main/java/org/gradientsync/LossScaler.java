package org.gradientsync;

import java.util.Objects;

/**
 * Dynamic loss scaling for gradients of 16 bits: multiplies the loss by a factor, so that small
 * gradients do not become zero, and finds a factor with which large ones do not become infinite.
 * Steps with gradients that are not finite are skipped on all ranks alike, without an exception.
 *
 * <pre>{@code
 * double scale = scaler.scale(); // of this step
 * backward(loss * scale);        // and ready() for each gradient
 * buckets.finish();
 * if (scaler.step(buckets)) {
 *   update(rate / scale);        // gradients have the factor scale
 * }
 * }</pre>
 *
 * <p>Each rank has its own scaler, made with the same arguments. Its state is the same on all
 * ranks, because the averages are. Do not use it with {@link GradientSync.Builder#requireFinite},
 * which throws instead. Not thread-safe.
 */
public final class LossScaler {
  private static final double LEAST = Float.MIN_NORMAL;
  private static final double MOST = 0x1p127;

  private final int goodSteps;
  private double scale;
  private int good; // steps since the scale has changed

  /** Begins with a scale of 65536, which 2000 good steps in a row double. */
  public LossScaler() {
    this(65_536, 2_000);
  }

  /**
   * Creates a scaler.
   *
   * @param scale the first scale, more than 0 and finite; with a power of two, scaling does not
   *     round
   * @param goodSteps the number of good steps in a row that double the scale, 1 or more
   * @throws IllegalArgumentException if an argument is out of range
   */
  public LossScaler(double scale, int goodSteps) {
    requireScale(scale);
    if (goodSteps < 1) {
      throw new IllegalArgumentException("goodSteps must be 1 or more: goodSteps=" + goodSteps);
    }
    this.scale = scale;
    this.goodSteps = goodSteps;
  }

  private static void requireScale(double scale) {
    if (!(scale > 0 && scale < Double.POSITIVE_INFINITY)) {
      throw new IllegalArgumentException("scale must be positive and finite: scale=" + scale);
    }
  }

  /**
   * What a checkpoint needs of a scaler.
   *
   * @param scale the factor for the loss of the next step
   * @param good the number of good steps in a row since the scale has changed, 0 or more
   */
  public record State(double scale, int good) {}

  /** {@return a copy of this scaler's state, the same on all ranks} */
  public State state() {
    return new State(scale, good);
  }

  /**
   * Continues from a state that was saved, on all ranks alike. Hooks do not learn this scale: load
   * their state, too, or call {@link BucketHook#rescale}.
   *
   * @param state what {@link #state} gave
   * @throws IllegalArgumentException if its scale is not positive and finite, or its number of
   *     steps is negative
   */
  public void restore(State state) {
    requireScale(Objects.requireNonNull(state, "state").scale());
    if (state.good() < 0) {
      throw new IllegalArgumentException("good must be 0 or more: good=" + state.good());
    }
    scale = state.scale();
    good = Math.min(state.good(), goodSteps - 1); // so that the next good step doubles the scale
  }

  /**
   * {@return the factor for the loss of the next step, within the range of normal floats, unless
   * the constructor was given another scale}
   */
  public double scale() {
    return scale;
  }

  /**
   * Decides whether to make the update of a step, and adapts the scale to it: halves it if an
   * average is not finite, and doubles it after enough good steps in a row. Call it once in each
   * step, after {@link GradientBuckets#finish()}, and after {@link
   * GradientBuckets#clipByGlobalNorm} if you clip. Does not change gradients. Communicates only if
   * buckets are {@linkplain GradientBuckets.Builder#sharded sharded} and were not clipped, see
   * {@link GradientBuckets#isFinite}. Hooks learn the new scale by {@link BucketHook#rescale}.
   *
   * @param buckets all buckets of the model, in the same order on all ranks
   * @return whether all averages are finite, the same on all ranks; if not, leave the update out
   * @throws IllegalStateException as {@link GradientBuckets#isFinite} does
   */
  public boolean step(GradientBuckets... buckets) {
    for (GradientBuckets each : buckets) {
      if (!each.isFinite()) { // on all ranks
        change(Math.max(scale / 2, Math.min(scale, LEAST)), buckets);
        return false;
      }
    }
    if (++good == goodSteps) {
      change(Math.min(scale * 2, Math.max(scale, MOST)), buckets);
    }
    return true;
  }

  private void change(double newScale, GradientBuckets... buckets) {
    good = 0;
    double factor = newScale / scale;
    scale = newScale;
    for (GradientBuckets each : buckets) {
      each.rescale(factor);
    }
  }
}

package org.gradientsync.elastic;

import java.util.Map;

/** Gradient descent with momentum on one thread, with the bits that elastic trainings must have. */
final class UndisturbedRun {
  private UndisturbedRun() {}

  /** A rank's gradient of one weight. */
  static float gradient(float weight, long step, int rank, int size, int index) {
    return weight * 0.25f + (step % 7 - 3) * 0.125f + rank * 0.1f / size + index % 13 * 0.01f;
  }

  /**
   * The weights at the end.
   *
   * @param sizes the number of ranks in each step
   */
  static float[] weights(Map<Long, Integer> sizes, int count) {
    float[] weights = new float[count];
    float[] moments = new float[count];
    for (long step = 0; step < sizes.size(); step++) {
      int size = sizes.get(step);
      for (int i = 0; i < count; i++) {
        float sum = gradient(weights[i], step, 0, size, i);
        for (int rank = 1; rank < size; rank++) {
          sum += gradient(weights[i], step, rank, size, i);
        }
        moments[i] = 0.875f * moments[i] + sum / size;
        weights[i] -= 0.5f * moments[i];
      }
    }
    return weights;
  }
}

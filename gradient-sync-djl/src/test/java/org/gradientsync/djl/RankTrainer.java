package org.gradientsync.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.TrainingConfig;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A trainer for ranks that are threads: DJL refuses to collect gradients in two threads at a time,
 * so they take turns.
 */
final class RankTrainer extends Trainer {
  private static final ReentrantLock TURN = new ReentrantLock();

  RankTrainer(Model model, TrainingConfig config) {
    super(model, config);
  }

  @Override
  public GradientCollector newGradientCollector() {
    TURN.lock();
    GradientCollector collector = super.newGradientCollector();
    return new GradientCollector() {
      @Override
      public void backward(NDArray target) {
        collector.backward(target);
      }

      @Override
      public void zeroGradients() {
        collector.zeroGradients();
      }

      @Override
      public void close() {
        collector.close();
        TURN.unlock();
      }
    };
  }
}

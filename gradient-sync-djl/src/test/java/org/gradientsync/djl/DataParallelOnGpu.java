package org.gradientsync.djl;

import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.engine.Engine;
import ai.djl.engine.StandardCapabilities;
import ai.djl.ndarray.NDManager;
import java.util.List;
import java.util.function.UnaryOperator;
import org.gradientsync.djl.Training.Outcome;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/**
 * Trainings on GPUs, to be run on a machine with two and with DJL's natives for CUDA on the class
 * path. The build has neither.
 */
class DataParallelOnGpu {
  @Test
  void ranksTrainOnTheirGpusAsOne() {
    assertTrue(
        Engine.getInstance().hasCapability(StandardCapabilities.CUDA), "DJL's PyTorch has no CUDA");
    Training training = new Training();
    training.options = UnaryOperator.identity();
    List<Outcome> outcomes = training.ranks(2);
    training.batch *= 2;
    DataParallelTest.requireAlike(training.ranks(1).get(0), outcomes);
  }

  @Test
  void gradientsAreAveragedInPlace() {
    LocalRanks.run(
        2,
        sync -> {
          try (var manager = NDManager.newBaseManager(DataParallel.device(sync));
              var array = manager.create(new float[] {1, 2}).add(sync.rank());
              var gradients = Gradients.of(sync, List.of("weight"), List.of(array))) {
            assertTrue(gradients instanceof GpuGradients, gradients::toString);
            gradients.average(1);
            assertTrue(array.eq(manager.create(new float[] {1.5f, 2.5f})).all().getBoolean());
          }
        });
  }
}

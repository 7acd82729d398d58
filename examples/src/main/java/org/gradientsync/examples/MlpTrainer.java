package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** Runs the steps of one rank. */
final class MlpTrainer {
  /**
   * A loss that was read.
   *
   * @param step the step, from 0
   * @param loss the mean over the step's rows on all ranks, before the step's update
   */
  record Loss(long step, double loss) {}

  private final GradientSync sync;
  private final MlpEngine engine;
  private final GradientBuckets buckets;
  private final int batches;
  private final int accumulate;
  private final DeviceBuffer[] gradients;
  private final Adam adam; // or null
  private final LocalSteps.Averages local; // or null
  private final IntConsumer update;
  private final GradientBuckets.ShardUpdate shardUpdate;
  private final double[] loss = new double[1];
  private final DoubleBuffer lossBuffer = DoubleBuffer.wrap(loss);

  /**
   * Creates a trainer of the engine's weights.
   *
   * @param rate the learning rate of plain gradient descent
   * @param adam updates the weights, or null for plain gradient descent
   * @param local whether ranks make several steps alone
   */
  MlpTrainer(
      GradientSync sync,
      MlpEngine engine,
      GradientBuckets buckets,
      int batches,
      int accumulate,
      double rate,
      Adam adam,
      LocalSteps local) {
    this.sync = sync;
    this.engine = engine;
    this.buckets = buckets;
    this.batches = batches;
    this.accumulate = accumulate;
    gradients = new DeviceBuffer[buckets.size()];
    for (int layer = 0; layer < gradients.length; layer++) {
      gradients[layer] = buckets.gradient(layer);
    }
    this.adam = adam;
    this.local = local.begin(sync, engine.weights());
    update = adam == null ? layer -> engine.update(layer, gradients[layer], rate) : adam::update;
    shardUpdate = (gradient, weight, shard) -> update.accept(shard);
  }

  /** Loads a rank's share of all batches. */
  static void load(
      GradientSync sync, MlpEngine engine, MlpData data, int batches, int rows, int[] widths) {
    double[] inputs = new double[rows * widths[0]];
    double[] targets = new double[rows * widths[widths.length - 1]];
    for (int batch = 0; batch < batches; batch++) {
      data.rows(((long) batch * sync.size() + sync.rank()) * rows, rows, inputs, targets);
      engine.load(batch, inputs, targets);
    }
  }

  /** Makes one step together with the other ranks. Collective. */
  void step(long step, boolean readLoss) {
    loss[0] = 0;
    if (local != null) {
      stepAlone(step, readLoss);
      local.end(step + 1);
    } else {
      stepTogether(step, readLoss);
    }
    if (readLoss) {
      sync.communicator().allReduce(lossBuffer, ReduceOp.AVERAGE);
    }
  }

  private void stepTogether(long step, boolean readLoss) {
    pass(step, readLoss);
    if (adam != null) {
      adam.begin(step);
    }
    if (adam != null && adam.isSharded()) {
      buckets.finish(shardUpdate);
    } else {
      buckets.finish(update);
    }
  }

  private void pass(long step, boolean readLoss) {
    if (accumulate > 1) {
      addUp(step, accumulate - 1, readLoss);
    }
    pass(step, accumulate - 1, readLoss);
  }

  /** Averages a step's gradients without shards, and leaves the weights alone. Collective. */
  void average(long step, boolean readLoss) {
    loss[0] = 0;
    pass(step, readLoss);
    buckets.finish();
    if (readLoss) {
      sync.communicator().allReduce(lossBuffer, ReduceOp.AVERAGE);
    }
  }

  /** Returns whether all ranks are to stop, the same on all. Collective. */
  boolean stopRequested() {
    return buckets.stopRequested();
  }

  /** Makes the same computation on this rank's own data, without the other ranks. */
  void stepAlone(long step, boolean readLoss) {
    addUp(step, accumulate, readLoss);
    update(step);
  }

  /** Updates the weights with the gradients of a step. */
  void update(long step) {
    int parts = adam == null ? gradients.length : adam.parts();
    if (adam != null) {
      adam.begin(step);
    }
    for (int part = parts - 1; part >= 0; part--) {
      update.accept(part);
    }
  }

  private void addUp(long step, int passes, boolean readLoss) {
    buckets.noSync(
        () -> {
          for (int pass = 0; pass < passes; pass++) {
            pass(step, pass, readLoss);
          }
        });
  }

  private void pass(long step, int pass, boolean readLoss) {
    engine.forward((int) ((step * accumulate + pass) % batches));
    for (int layer = gradients.length - 1; layer >= 0; layer--) {
      engine.backward(layer, gradients[layer], 1.0 / accumulate, pass > 0);
      buckets.ready(layer);
    }
    if (readLoss) {
      loss[0] += engine.loss() / accumulate;
    }
  }

  /** Returns the loss of the last {@link #step} that read it, the same on all ranks. */
  double loss() {
    return loss[0];
  }

  /**
   * Returns what to write to a checkpoint on rank 0: the weights, and Adam's moments. Collective.
   */
  List<DeviceBuffer> gatherState() {
    if (adam == null) {
      return engine.weights();
    }
    adam.gather();
    List<DeviceBuffer> all = new ArrayList<>(engine.weights());
    all.addAll(adam.whole());
    return all;
  }

  /** Waits for all work enqueued on the device. */
  void await() {
    Weights.await(engine.weights());
  }
}

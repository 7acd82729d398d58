package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.metric.Metric;
import ai.djl.metric.Metrics;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.initializer.Initializer;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;

/** A small network, trained by ranks that are threads, or by DJL alone. */
final class Training {
  static final int FEATURES = 4;
  static final int CLASSES = 3;
  private static final int HIDDEN = 8;

  /** So that tests are alike on machines with GPUs. */
  static final UnaryOperator<GradientSync.Builder> HOST = options -> options.device("host");

  UnaryOperator<GradientSync.Builder> options = HOST;
  int rows = 24;
  int batch = 4; // of a rank
  int epochs = 3;
  boolean validates = true;
  IntFunction<Block> block = Training::block;
  BiConsumer<GradientSync, Model> onModel = (sync, model) -> {};
  BiConsumer<GradientSync, Trainer> onTrainer = (sync, trainer) -> {};
  Listeners listeners =
      (sync, own) -> {
        List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
        all.add(own);
        return all;
      };

  /** The listeners of a rank, in their order. */
  interface Listeners {
    List<TrainingListener> with(GradientSync sync, TrainingListener dataParallel)
        throws IOException;
  }

  /** What a rank has in the end. */
  record Outcome(
      List<Double> losses,
      List<Double> validations,
      List<Double> accuracies,
      Float loss,
      Float accuracy,
      float[] weights) {}

  /** With this library, one outcome for each rank. */
  List<Outcome> ranks(int ranks) {
    return LocalRanks.call(ranks, options, this::rank);
  }

  Outcome rank(GradientSync sync) throws Exception {
    return run(sync, DataParallel.with(sync));
  }

  Outcome run(GradientSync sync, TrainingListener own) throws Exception {
    try (Model model = Model.newInstance("model" + sync.rank(), DataParallel.device(sync))) {
      model.setBlock(block.apply(sync.rank()));
      onModel.accept(sync, model);
      try (NDManager data = NDManager.newBaseManager(DataParallel.device(sync));
          Trainer trainer = new RankTrainer(model, config(sync, listeners.with(sync, own)))) {
        trainer.setMetrics(new Metrics());
        trainer.initialize(new Shape(1, FEATURES));
        onTrainer.accept(sync, trainer);
        RandomAccessDataset part = DataParallel.part(sync, rows(data));
        EasyTrain.fit(trainer, epochs, part, validates ? part : null);
        return outcome(trainer);
      }
    }
  }

  private static DefaultTrainingConfig config(GradientSync sync, List<TrainingListener> listeners) {
    return config(DataParallel.device(sync), listeners.toArray(TrainingListener[]::new));
  }

  static DefaultTrainingConfig config(Device device, TrainingListener... listeners) {
    return new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
        .optDevices(new Device[] {device})
        .addEvaluator(new Accuracy())
        .optOptimizer(
            Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.2f)).optMomentum(0.9f).build())
        .addTrainingListeners(listeners);
  }

  /** Other first weights on each rank. */
  static Block block(int rank) {
    Block block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(HIDDEN).build())
            .add(Activation::tanh)
            .add(Linear.builder().setUnits(CLASSES).build());
    Initializer initializer =
        (manager, shape, type) ->
            manager
                .arange((int) shape.size())
                .toType(DataType.FLOAT32, false)
                .reshape(shape)
                .add(rank * 10 + 1)
                .sin()
                .mul(0.5);
    block.setInitializer(initializer, parameter -> true);
    return block;
  }

  RandomAccessDataset rows(NDManager manager) {
    float[] features = new float[rows * FEATURES];
    float[] labels = new float[rows];
    for (int row = 0; row < rows; row++) {
      labels[row] = row * 7 % CLASSES;
      for (int i = 0; i < FEATURES; i++) {
        features[row * FEATURES + i] =
            (float) (Math.sin(row * 3 + i * 5) + (i == labels[row] ? 1 : 0));
      }
    }
    return new ArrayDataset.Builder()
        .setData(manager.create(features, new Shape(rows, FEATURES)))
        .optLabels(manager.create(labels))
        .setSampling(batch, false)
        .build();
  }

  static Outcome outcome(Trainer trainer) {
    return new Outcome(
        history(trainer, "train_epoch_SoftmaxCrossEntropyLoss"),
        history(trainer, "validate_epoch_SoftmaxCrossEntropyLoss"),
        history(trainer, "train_epoch_Accuracy"),
        trainer.getTrainingResult().getTrainLoss(),
        trainer.getTrainingResult().getTrainEvaluation("Accuracy"),
        weights(trainer.getModel()));
  }

  private static List<Double> history(Trainer trainer, String metric) {
    return trainer.getMetrics().getMetric(metric).stream().map(Metric::getValue).toList();
  }

  static float[] weights(Model model) {
    float[] all = {};
    for (var parameter : model.getBlock().getParameters().values()) {
      NDArray array = parameter.getArray();
      float[] values = array.toFloatArray();
      int end = all.length;
      all = Arrays.copyOf(all, end + values.length);
      System.arraycopy(values, 0, all, end, values.length);
    }
    return all;
  }
}

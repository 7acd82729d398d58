package org.gradientsync.examples.djl;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.metric.Metric;
import ai.djl.metric.Metrics;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.pooling.Pool;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.SaveModelTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.gradientsync.GradientSync;
import org.gradientsync.djl.DataParallel;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A training with Deep Java Library. {@link DataParallel} makes it one of all ranks. */
@Command(
    name = "djl-training",
    sortOptions = false,
    description =
        "Trains a convolutional network on images of digits with Deep Java Library. A rank is a"
            + " process.")
public final class DjlTraining implements Callable<Integer> {
  private static final double ENOUGH = 0.9;
  private static final int TRAINED = 5; // images for one that is tested

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this and exit.")
  private boolean help;

  @Option(
      names = "--epochs",
      defaultValue = "3",
      description = "How often it sees all images (default: ${DEFAULT-VALUE}).")
  private int epochs;

  @Option(
      names = "--rows",
      defaultValue = "3000",
      description = "Images of all ranks (default: ${DEFAULT-VALUE}).")
  private int rows;

  @Option(
      names = "--batch",
      defaultValue = "30",
      description = "Images of a batch of all ranks (default: ${DEFAULT-VALUE}).")
  private int batch;

  @Option(
      names = "--elastic",
      description = "Go on when ranks are lost, over TCP; they do not join again.")
  private boolean elastic;

  @Option(names = "--save", description = "A folder to save the model in.")
  private Path folder;

  @Spec private CommandSpec spec;

  private DjlTraining() {}

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    System.exit(
        new CommandLine(new DjlTraining())
            .setParameterExceptionHandler(DjlTraining::explain)
            .execute(args));
  }

  /** In one sentence, as the other examples do. */
  private static int explain(ParameterException e, String[] args) {
    CommandLine line = e.getCommandLine();
    line.getErr().println(line.getCommandName() + ": " + e.getMessage());
    return CommandLine.ExitCode.USAGE;
  }

  private void requireBetween(int least, int most, String option, int value) {
    if (value < least || value > most) {
      String range = most == Integer.MAX_VALUE ? least + " or more" : least + " to " + most;
      throw new ParameterException(
          spec.commandLine(), "%s must be %s: %s %s.".formatted(option, range, option, value));
    }
  }

  @Override
  public Integer call() throws Exception {
    requireBetween(1, Integer.MAX_VALUE, "--epochs", epochs);
    requireBetween(TRAINED, Integer.MAX_VALUE / (Digits.SIDE * Digits.SIDE), "--rows", rows);
    requireBetween(1, Integer.MAX_VALUE, "--batch", batch);
    try (GradientSync sync = GradientSync.builder().elastic(elastic).create()) {
      if (batch < sync.size()) {
        throw new ParameterException(
            spec.commandLine(),
            "--batch must be at least the number of ranks: --batch " + batch + ".");
      }
      Device device = DataParallel.device(sync);
      try (Model model = Model.newInstance("digits", device)) {
        model.getNDManager().getEngine().setRandomSeed(1 + sync.rank()); // rank 0's weights win
        model.setBlock(network());
        DataParallel ranks = DataParallel.with(sync).elastic(elastic);
        try (Trainer trainer = model.newTrainer(config(ranks, device))) {
          trainer.setMetrics(new Metrics());
          trainer.initialize(new Shape(1, 1, Digits.SIDE, Digits.SIDE));
          NDManager manager = trainer.getManager();
          int ownBatch = batch / sync.size();
          RandomAccessDataset training = Digits.rows(manager, rows, ownBatch, 1);
          RandomAccessDataset test = Digits.rows(manager, rows / TRAINED, ownBatch, 2);
          EasyTrain.fit(
              trainer, epochs, DataParallel.part(sync, training), DataParallel.part(sync, test));
          return ranks.sync().rank() > 0 || report(ranks.sync(), trainer) ? 0 : 1;
        }
      }
    }
  }

  private static SequentialBlock network() {
    return new SequentialBlock()
        .add(Conv2d.builder().setKernelShape(new Shape(5, 5)).setFilters(8).build())
        .add(Activation::relu)
        .add(Pool.maxPool2dBlock(new Shape(2, 2), new Shape(2, 2)))
        .add(Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(64).build())
        .add(Activation::relu)
        .add(Linear.builder().setUnits(Digits.CLASSES).build());
  }

  private DefaultTrainingConfig config(DataParallel ranks, Device device) {
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .addEvaluator(new Accuracy())
            .optDevices(new Device[] {device})
            .addTrainingListeners(TrainingListener.Defaults.basic())
            .addTrainingListeners(ranks)
            .addTrainingListeners(
                new TrainingListenerAdapter() {
                  @Override
                  public void onEpoch(Trainer trainer) {
                    if (ranks.sync().rank() == 0) {
                      reportEpoch(trainer);
                    }
                  }
                });
    if (folder != null) {
      config.addTrainingListeners(new SaveModelTrainingListener(folder.toString()));
    }
    return config;
  }

  private static void reportEpoch(Trainer trainer) {
    List<Metric> losses = trainer.getMetrics().getMetric("train_epoch_SoftmaxCrossEntropyLoss");
    List<Metric> tests = trainer.getMetrics().getMetric("validate_epoch_SoftmaxCrossEntropyLoss");
    int last = losses.size() - 1;
    System.out.printf(
        Locale.ROOT,
        "Epoch %d, Loss: %.7f, Test loss: %.7f%n",
        losses.size(),
        losses.get(last).getValue(),
        tests.get(last).getValue());
  }

  private static boolean report(GradientSync sync, Trainer trainer) {
    double accuracy = trainer.getTrainingResult().getValidateEvaluation("Accuracy");
    System.out.printf(Locale.ROOT, "Ranks: %d, reducer %s%n", sync.size(), sync.reducer());
    System.out.printf(
        Locale.ROOT,
        "%s %.1f %% of the test images are recognized.%n",
        accuracy >= ENOUGH ? "[PASS]" : "[FAIL]",
        100 * accuracy);
    return accuracy >= ENOUGH;
  }
}

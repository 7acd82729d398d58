package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.engine.StandardCapabilities;
import ai.djl.ndarray.NDList;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import java.io.IOException;
import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a training with Deep Java Library data-parallel: each rank trains the same model on its own
 * rows.
 *
 * <pre>{@code
 * try (GradientSync sync = GradientSync.create();
 *     Model model = Model.newInstance("mlp", DataParallel.device(sync))) {
 *   model.setBlock(block);
 *   DefaultTrainingConfig config = new DefaultTrainingConfig(loss)
 *       .optDevices(new Device[] {DataParallel.device(sync)})
 *       .addTrainingListeners(TrainingListener.Defaults.logging())
 *       .addTrainingListeners(DataParallel.with(sync));
 *   try (Trainer trainer = model.newTrainer(config)) {
 *     trainer.initialize(shape);
 *     EasyTrain.fit(trainer, epochs, DataParallel.part(sync, rows), null);
 *   }
 * }
 * }</pre>
 *
 * <p>What it does, at any place among the listeners:
 *
 * <ul>
 *   <li><b>Start.</b> All parameters become those of rank 0, when the trainer is created or, if
 *       they are not initialized yet, when they are.
 *   <li><b>Gradients.</b> Between the backward pass and {@code Trainer.step} each gradient becomes
 *       the average over all rows of the step, of all ranks. So a step equals that of one rank with
 *       all these rows, if the loss is a mean over rows. Frozen parameters are left out.
 *   <li><b>Uneven batches.</b> The ranks may have different numbers of rows in a step. A rank with
 *       fewer batches than others takes part in their steps with no rows, and makes the same
 *       updates.
 *   <li><b>Metrics.</b> At the end of each epoch DJL's metrics {@code train_epoch_*} and {@code
 *       validate_epoch_*} and the trainer's {@code TrainingResult} have the means over all rows of
 *       all ranks, each row counted once. Metrics of single batches remain those of this rank.
 *   <li><b>Batch normalization.</b> After the last batch of an epoch, before validation and saving,
 *       running means and variances become their averages over the ranks; {@link
 *       #averageStatistics} turns that off.
 *   <li><b>Lost ranks</b> end the training, unless it is {@link #elastic}.
 *   <li><b>Saving.</b> DJL's {@code SaveModelTrainingListener} saves on rank 0 only. For other
 *       listeners that only one rank should have, ask {@code sync.rank() == 0} before you add them.
 * </ul>
 *
 * <p>A loop of your own calls {@code Trainer.step} once after each {@code EasyTrain.trainBatch},
 * and notifies the listeners of the end of each epoch, as {@code EasyTrain.fit} does.
 *
 * <p>Gradients are averaged where they are. In host memory DJL's gradients move into this library's
 * buckets until the trainer is closed. On a GPU the sync reads and writes DJL's memory, on the
 * stream on which PyTorch computes. Where that is not possible, gradients are copied through host
 * memory, and a warning says why.
 *
 * <p>Its methods are called by DJL, in the thread that trains, and are collective: all ranks train
 * with the same model and listeners and the same number of epochs, and freeze the same parameters.
 * If their parameters differ, all throw a {@link org.gradientsync.MismatchedCallException} that
 * names one. They throw what the calls of {@link GradientSync} throw. One instance is for one
 * trainer at a time. A rank is a process: DJL's PyTorch collects gradients for one thread at a
 * time.
 */
public final class DataParallel extends TrainingListenerAdapter {
  private static final Logger log = LoggerFactory.getLogger(DataParallel.class);

  private final ElasticCalls calls;
  private final double[] step = new double[3];
  private final DoubleBuffer stepBuffer = DoubleBuffer.wrap(step);
  private Replicas replicas;
  private Metrics metrics;
  private Saving saving;

  /** Whether some rank may still have batches in this epoch. */
  private boolean moreBatches;

  /** Whether this rank has had a batch in this epoch. */
  private boolean training;

  private boolean epochHasEnded;
  private boolean averagesStatistics = true;

  /** Whether the running means are averages since the last batch. */
  private boolean statisticsAveraged;

  DataParallel(ElasticCalls calls) {
    this.calls = calls;
  }

  /**
   * Creates the listener for this rank's trainer.
   *
   * @param sync stays open until the trainer is closed
   * @return for {@code addTrainingListeners}
   */
  public static DataParallel with(GradientSync sync) {
    return new DataParallel(new ElasticCalls(sync));
  }

  /**
   * Chooses whether the running means and variances of batch normalizations are averaged over the
   * ranks at the end of each epoch. Otherwise each rank has those of its own rows, and the model
   * that rank 0 saves has its own.
   *
   * @param average the same on all ranks; true if not set
   * @return this listener
   */
  public DataParallel averageStatistics(boolean average) {
    averagesStatistics = average;
    return this;
  }

  /**
   * Chooses whether the training goes on when ranks are lost: those that are left make a sync of
   * their own with {@link GradientSync#survivors}, and repeat the step. If one of them has finished
   * it, the others get its gradients and make the same update. The weights then have the same bits
   * on all ranks, and those of an undisturbed run that had the smaller number of ranks from that
   * step on. A loss before the first step ends the training on ranks that are still starting.
   *
   * <p>Rank numbers change: the new rank 0 saves, and {@link #sync} has the ranks that take part.
   * The rows of a lost rank are not seen any more, unless the program divides them anew. Lost ranks
   * do not join again, as DJL would begin its epochs anew. If rank 0 is lost while it saves, the
   * next model to be saved is that of a later epoch. Each rank keeps two copies of its gradients.
   *
   * <p>Set {@link GradientSync.Builder#elastic} as well: otherwise a rank that ends with an
   * exception ends the job.
   *
   * @param elastic the same on all ranks; false if not set
   * @return this listener
   */
  public DataParallel elastic(boolean elastic) {
    calls.elastic(elastic ? new AfterLoss() : null);
    return this;
  }

  /** What follows the ranks that are left. */
  private final class AfterLoss implements ElasticCalls.Change {
    @Override
    public void end() {
      replicas.close();
    }

    @Override
    public void begin() {
      saving.follow(sync());
    }
  }

  /**
   * {@return the sync of the ranks that take part now: the one that this listener was created with,
   * or after a loss in an {@link #elastic} training that of the ranks that are left, which is
   * closed when the trainer is} Do not close it.
   */
  public GradientSync sync() {
    return calls.sync();
  }

  /**
   * Chooses this rank's part of the rows: those with the numbers rank, rank + size, rank + 2 size
   * and so on. Batches of b rows, in order, are then together the batches that one rank with b *
   * size rows would have. Not collective.
   *
   * <p>The arrays of an {@link ArrayDataset} may be on any device, such as DJL's default one: each
   * batch is moved to the device of the training.
   *
   * @param sync has the rank
   * @param rows all rows, the same on all ranks; prepared if it is not yet
   * @return a view of them, with the dataset's sampling, transformations and limits
   * @throws IOException if the dataset cannot be prepared
   * @throws TranslateException likewise
   */
  public static RandomAccessDataset part(GradientSync sync, RandomAccessDataset rows)
      throws IOException, TranslateException {
    rows.prepare();
    int size = sync.size();
    List<Long> own =
        LongStream.iterate(sync.rank(), row -> row < rows.size(), row -> row + size)
            .boxed()
            .toList();
    RandomAccessDataset part = own.isEmpty() ? rows.subDataset(0, 0) : rows.subDataset(own);
    return rows instanceof ArrayDataset ? new ArrayPart(part) : part;
  }

  /**
   * The device to train on: the sync's GPU if it has one and DJL's engine works there, otherwise
   * the CPU. Needed only on machines with GPUs, where DJL's default is to train on all of them.
   *
   * @param sync has the device
   * @return a device for {@code Model.newInstance} and {@code optDevices}
   */
  public static Device device(GradientSync sync) {
    if (!Replicas.onCuda(sync) || !Engine.getInstance().hasCapability(StandardCapabilities.CUDA)) {
      return Device.cpu();
    }
    return GpuArrays.deviceOf(sync);
  }

  /**
   * Broadcasts the parameters that are initialized, and prepares the others for it.
   *
   * @param trainer the new trainer
   * @throws IllegalStateException if the trainer has several devices, or another one than the model
   */
  @Override
  public void onTrainingBegin(Trainer trainer) {
    Device[] devices = trainer.getDevices();
    if (devices.length != 1) {
      throw new IllegalStateException(
          ("a rank trains on one device: devices=%s, rank=%s; add optDevices(new Device[]"
                  + " {DataParallel.device(sync)}) to the training's configuration")
              .formatted(Arrays.toString(devices), sync().rank()));
    }
    Device model = trainer.getModel().getNDManager().getDevice();
    if (!model.equals(devices[0])) { // DJL would train a copy of the parameters
      throw new IllegalStateException(
          ("the model is on another device than the training: model=%s, training=%s, rank=%s;"
                  + " create the model on DataParallel.device(sync)")
              .formatted(model, devices[0], sync().rank()));
    }
    moreBatches = true;
    training = false;
    statisticsAveraged = false;
    replicas = new Replicas(calls, trainer);
    metrics = new Metrics(calls, trainer, this);
    saving = new Saving(sync(), trainer, this);
    replicas.broadcast();
  }

  /**
   * Averages the gradients of a batch.
   *
   * @param trainer the trainer
   * @param data the batch
   */
  @Override
  public void onTrainingBatch(Trainer trainer, BatchData data) {
    training = true;
    epochHasEnded = false;
    statisticsAveraged = false;
    saving.onBatch();
    average(data.getBatch().getSize(), true);
  }

  /**
   * Takes part in the steps of ranks that have more batches, before this rank validates.
   *
   * @param trainer the trainer
   * @param data the batch
   */
  @Override
  public void onValidationBatch(Trainer trainer, BatchData data) {
    if (training && takePart(trainer)) {
      // These predictions are of older weights than the other ranks'.
      NDList rows = data.getBatch().getData();
      for (Map.Entry<Device, NDList> prediction : data.getPredictions().entrySet()) {
        prediction.setValue(trainer.evaluate(rows.toDevice(prediction.getKey(), false)));
        metrics.correct(data.getLabels().get(prediction.getKey()), prediction.getValue());
      }
    }
  }

  /**
   * Averages the metrics of the epoch.
   *
   * @param trainer the trainer
   */
  @Override
  public void onEpoch(Trainer trainer) {
    if (!metrics.areReadBefore()) {
      endEpoch(trainer);
    }
    epochHasEnded = false;
    saving.onEpoch(trainer);
  }

  /**
   * Gives DJL's gradients memory of their own again, and frees the buckets. Where gradients are
   * averaged in a GPU's memory, it waits for all ranks; if that fails, a warning says so, and DJL
   * closes the trainer nevertheless.
   *
   * @param trainer the trainer that is being closed
   */
  @Override
  public void onTrainingEnd(Trainer trainer) {
    if (replicas != null) {
      saving.onEnd();
      Replicas last = replicas;
      replicas = null;
      try {
        Resources.closeAll(last, calls);
      } catch (GradientSyncException e) { // rank 0's model is still to be saved
        log.warn("training ends without the other ranks: rank={}", sync().rank(), e);
      }
    }
  }

  /** Before the metrics are read. Several listeners may reset the evaluators. */
  void endEpochOnce(Trainer trainer) {
    if (!epochHasEnded) {
      endEpoch(trainer);
    }
  }

  private void endEpoch(Trainer trainer) {
    epochHasEnded = true;
    takePart(trainer);
    moreBatches = true;
    training = false;
    statisticsAveraged = false;
    metrics.average();
  }

  /**
   * Averages the gradients of the next step.
   *
   * @param rows of this rank's batch
   * @return false if no rank has rows, and there is no step
   */
  private boolean average(int rows, boolean mayHaveMore) {
    step[0] = rows;
    step[1] = mayHaveMore ? 1 : 0;
    step[2] = replicas.haveChanged() ? 1 : 0;
    calls.run(
        step,
        replicas::gradients,
        () -> {
          sync().communicator().allReduce(stepBuffer, ReduceOp.SUM);
          if (step[0] > 0) {
            replicas.average(rows * sync().size() / step[0], step[2] > 0);
          }
        });
    moreBatches = step[1] > 0;
    if (step[0] > 0) {
      replicas.stepIsDone();
    }
    return step[0] > 0;
  }

  /**
   * After this rank's last batch of an epoch: makes the other ranks' steps with them, without rows,
   * and averages the running means. Returns whether that has changed the model.
   */
  private boolean takePart(Trainer trainer) {
    boolean took = false;
    while (moreBatches) {
      if (average(0, false)) {
        trainer.step();
        took = true;
        statisticsAveraged = false;
      }
    }
    if (averagesStatistics && !statisticsAveraged) {
      statisticsAveraged = true;
      took |= replicas.averageStatistics();
    }
    return took;
  }
}

package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.dataset.Record;
import ai.djl.training.dataset.Sampler;
import ai.djl.translate.TranslateException;
import ai.djl.util.Progress;
import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutorService;

/**
 * A part of a dataset of arrays that may be on another device than the training. DJL looks rows up
 * with their numbers on the training's device, and PyTorch refuses numbers on another GPU than the
 * rows. So batches are made where the rows are, and then moved.
 */
final class ArrayPart extends RandomAccessDataset {
  private final RandomAccessDataset rows;

  ArrayPart(RandomAccessDataset rows) {
    super(new Unused().setSampling(1, false));
    this.rows = rows;
  }

  /** The options of the part are those of its rows. */
  private static final class Unused extends BaseBuilder<Unused> {
    @Override
    protected Unused self() {
      return this;
    }
  }

  /** Makes batches with a manager of the rows' device. */
  private interface Source {
    Iterable<Batch> with(NDManager manager) throws IOException, TranslateException;
  }

  @Override
  public Iterable<Batch> getData(NDManager manager) throws IOException, TranslateException {
    return on(manager, rows::getData);
  }

  @Override
  public Iterable<Batch> getData(NDManager manager, ExecutorService executor)
      throws IOException, TranslateException {
    return on(manager, home -> rows.getData(home, executor));
  }

  @Override
  public Iterable<Batch> getData(NDManager manager, Sampler sampler, ExecutorService executor)
      throws IOException, TranslateException {
    return on(manager, home -> rows.getData(home, sampler, executor));
  }

  private Iterable<Batch> on(NDManager manager, Source source)
      throws IOException, TranslateException {
    Device device = deviceOfRows(manager);
    if (device.equals(manager.getDevice())) {
      return source.with(manager);
    }
    NDManager home = manager.newSubManager(device);
    Iterator<Batch> batches = source.with(home).iterator();
    return () ->
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            if (batches.hasNext()) {
              return true;
            }
            home.close();
            return false;
          }

          @Override
          public Batch next() {
            return move(batches.next(), manager.newSubManager());
          }
        };
  }

  private Device deviceOfRows(NDManager manager) throws IOException {
    if (size() == 0) {
      return manager.getDevice();
    }
    try (NDManager scratch = manager.newSubManager()) {
      return rows.get(scratch, 0).getData().head().getDevice();
    }
  }

  /** The rank's only device takes the whole batch, so it needs no batchifier to split it. */
  private static Batch move(Batch batch, NDManager target) {
    try (batch) {
      return new Batch(
          target,
          batch.getData().toDevice(target.getDevice(), false),
          batch.getLabels().toDevice(target.getDevice(), false),
          batch.getSize(),
          null,
          null,
          batch.getProgress(),
          batch.getProgressTotal(),
          batch.getIndices());
    }
  }

  @Override
  public Record get(NDManager manager, long index) throws IOException {
    return rows.get(manager, index);
  }

  @Override
  protected long availableSize() {
    return rows.size();
  }

  @Override
  public void prepare(Progress progress) throws IOException, TranslateException {
    rows.prepare(progress);
  }

  @Override
  protected RandomAccessDataset newSubDataset(int[] indices, int from, int to) {
    return new ArrayPart(
        from == to
            ? rows.subDataset(0, 0)
            : rows.subDataset(Arrays.stream(indices, from, to).asLongStream().boxed().toList()));
  }

  @Override
  protected RandomAccessDataset newSubDataset(List<Long> indices) {
    return new ArrayPart(rows.subDataset(indices));
  }
}

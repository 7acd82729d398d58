package org.gradientsync.examples;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.elastic.ElasticLoop;
import org.gradientsync.spi.Resources;

/**
 * The training of one rank of {@link TrainMlp} among ranks that may be lost and may join. Layers
 * and Adam's moments live as long as this, buckets as long as the ranks stay the same. With shards
 * all of these are made again with the buckets, and the state is a copy in host memory.
 */
final class ElasticMlp implements ElasticLoop, AutoCloseable {
  private final TrainMlp program;
  private final boolean sharded;
  private final List<DeviceBuffer> copies = new ArrayList<>(); // with shards
  private final List<MlpTrainer.Loss> losses = new ArrayList<>();
  private final Resources resources = new Resources();
  private MlpEngine engine;
  private Adam adam; // or null
  private GradientSync sync;
  private GradientBuckets buckets;
  private MlpTrainer trainer;
  private int refusal; // of rank 0: an exit code, or 0
  private int changes;
  private long first;
  private long done;
  private boolean kept = true;

  ElasticMlp(TrainMlp program, GradientSync sync, boolean sharded) {
    this.program = program;
    this.sharded = sharded;
    engine = program.engine(sync);
    if (sharded) {
      for (int copy = 0; copy < 3; copy++) { // weights, means, squares
        for (Parameter layer : engine.parameters()) {
          copies.add(resources.add(ElasticLoop.hostBuffer(layer.type(), layer.count())));
        }
      }
    } else {
      adam = program.adam(sync, engine, null);
    }
  }

  /** Begins after so many steps. With an exit code, all ranks end with it at once. */
  void start(long steps, int code) {
    first = steps;
    done = steps;
    refusal = code;
  }

  @Override
  public void begin(GradientSync newSync) {
    boolean isFirst = sync == null;
    changes += isFirst || sync == newSync ? 0 : 1;
    sync = newSync;
    changes = (int) sync.communicator().max(changes); // those that join have seen none
    program.requireOptionsOfFirst(sync);
    engine = engine == null ? program.engine(sync) : engine;
    buckets = program.buckets(sync, engine.parameters(), null);
    if (sharded) {
      adam = program.adam(sync, engine, buckets);
      for (int i = 0; i < layers(); i++) {
        Weights.copy(copies.get(i), engine.weights().get(i));
      }
      for (int i = 0; i < adam.whole().size(); i++) { // on rank 0
        Weights.copy(copies.get(layers() + i), adam.whole().get(i));
      }
      adam.scatter();
    } else if (adam != null) {
      adam.use(buckets);
    }
    trainer = program.trainer(sync, engine, buckets, adam);
    if (!isFirst) {
      program.print(sync, "Ranks from step %d on: %d", done, sync.size());
    } else if (refusal == 0) {
      program.printStart(sync, engine, buckets, adam, first);
    }
  }

  private int layers() {
    return engine.parameters().size();
  }

  @Override
  public void compute(long step) {
    boolean read = program.readsLoss(step);
    if (sharded) {
      trainer.step(step, read); // the copies stay as they are
    } else {
      trainer.average(step, read);
    }
    if (read) {
      losses.removeIf(loss -> loss.step() >= step); // if a step is repeated
      losses.add(new MlpTrainer.Loss(step, trainer.loss()));
    }
  }

  @Override
  public void update(long step) {
    done = step + 1;
    if (!sharded) {
      trainer.update(step);
      keep();
    }
  }

  @Override
  public void end() {
    if (sharded) {
      closeLayers();
    }
    Resources.closeAll(buckets);
    buckets = null;
  }

  @Override
  public List<DeviceBuffer> state() {
    if (sharded) {
      return copies;
    }
    List<DeviceBuffer> all = new ArrayList<>(engine.weights());
    all.addAll(adam == null ? List.of() : adam.whole());
    return all;
  }

  @Override
  public void gather() {
    adam.gather();
    for (int i = 0; i < copies.size(); i++) {
      if (i < layers()) {
        Weights.copy(engine.weights().get(i), copies.get(i));
      } else {
        if (sync.rank() == 0) {
          Weights.copy(adam.whole().get(i - layers()), copies.get(i));
        }
        Weights.broadcast(sync.communicator(), copies.get(i), 0);
      }
    }
    keep();
  }

  /** Writes a checkpoint on rank 0, as all ranks leave. Returns whether it was written if due. */
  boolean keepAtEnd() {
    program.print(sync, "Stopped by a signal, steps done: %d", done);
    keep(true);
    return kept;
  }

  private void keep() {
    keep(done == program.steps());
  }

  /** Writes a checkpoint on rank 0 if it is due. */
  private void keep(boolean last) {
    if (sync.rank() == 0 && done > first && program.keeps(done, last)) {
      boolean finite = losses.stream().allMatch(loss -> Double.isFinite(loss.loss()));
      kept &= program.keep(done, state(), List.of(), finite);
    }
  }

  @Override
  public byte[] save() {
    int bytes = Integer.BYTES + (2 + 2 * losses.size()) * Long.BYTES;
    ByteBuffer saved = ByteBuffer.allocate(bytes).putInt(refusal);
    saved.putLong(first).putLong(done);
    losses.forEach(loss -> saved.putLong(loss.step()).putDouble(loss.loss()));
    return saved.array();
  }

  @Override
  public void load(byte[] bytes) {
    ByteBuffer saved = ByteBuffer.wrap(bytes);
    refusal = saved.getInt();
    first = saved.getLong();
    done = saved.getLong();
    losses.clear();
    while (saved.hasRemaining()) {
      losses.add(new MlpTrainer.Loss(saved.getLong(), saved.getDouble()));
    }
  }

  List<DeviceBuffer> weights() {
    return engine.weights();
  }

  /** Returns all losses read, those of steps before this rank has joined included. */
  List<MlpTrainer.Loss> losses() {
    return losses;
  }

  int refusal() {
    return refusal;
  }

  long first() {
    return first;
  }

  int changes() {
    return changes;
  }

  /** Returns whether this rank has written all checkpoints that it should. */
  boolean hasKept() {
    return kept;
  }

  private void closeLayers() {
    Resources.closeAll(adam, engine);
    adam = null;
    engine = null;
  }

  @Override
  public void close() {
    closeLayers();
    resources.close();
  }
}

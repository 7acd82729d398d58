package org.gradientsync.examples;

import java.io.IOException;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.cuda.compute.PreparedLaunch;
import org.gradientsync.local.LocalRanks;

/** Learns sines of its inputs with a hidden layer, on GPUs: output = tanh(input * W1) * W2. */
public final class TrainOnGpus {
  static final int INPUTS = 4;
  static final int HIDDEN = 256;
  static final int OUTPUTS = 4;
  static final int ROWS = 120; // of a step, all ranks together; a multiple of their number
  static final float RATE = 0.5f;
  static final List<Parameter> PARAMETERS =
      List.of(
          new Parameter("W1", DataType.FLOAT32, INPUTS * HIDDEN),
          new Parameter("W2", DataType.FLOAT32, HIDDEN * OUTPUTS));

  private final GradientSync sync;
  private final CudaDevice gpu;
  private final CudaStream stream;
  private final int rows; // of this rank
  private final float[] inputs;
  private final float[] targets;

  private TrainOnGpus(GradientSync sync) {
    this.sync = sync;
    gpu = (CudaDevice) sync.device();
    stream = gpu.stream();
    if (ROWS % sync.size() != 0) { // or ranks would have different numbers of rows
      throw new IllegalArgumentException("rows=" + ROWS + ", ranks=" + sync.size());
    }
    rows = ROWS / sync.size();
    inputs = new float[rows * INPUTS];
    targets = new float[rows * OUTPUTS];
  }

  public static void main(String[] args) throws IOException {
    String ptx = Files.readString(Path.of(args[0]));
    if (args.length > 1) { // so many threads, a GPU each
      int ranks = Integer.parseInt(args[1]);
      LocalRanks.run(ranks, b -> b.device("cuda"), sync -> train(sync, ptx, 1000));
    } else { // one rank, or what mpirun has started
      try (GradientSync sync = GradientSync.builder().device("cuda").create()) {
        train(sync, ptx, 1000);
      }
    }
  }

  /** Gives the last loss. */
  public static double train(GradientSync sync, String ptx, int steps) {
    return new TrainOnGpus(sync).train(ptx, steps);
  }

  private double train(String ptx, int steps) {
    try (CudaModule module = CudaModule.load(gpu, ptx);
        CudaBlas blas = CudaBlas.create(gpu);
        CudaBuffer input = allocate(inputs.length);
        CudaBuffer target = allocate(targets.length);
        CudaBuffer w1 = allocate(PARAMETERS.get(0).count());
        CudaBuffer w2 = allocate(PARAMETERS.get(1).count());
        CudaBuffer hidden = allocate(rows * HIDDEN);
        CudaBuffer hiddenDelta = allocate(rows * HIDDEN);
        CudaBuffer output = allocate(targets.length); // and then its delta
        GradientBuckets buckets = GradientBuckets.builder(sync, PARAMETERS).build()) {
      CudaBuffer g1 = (CudaBuffer) buckets.gradient(0);
      CudaBuffer g2 = (CudaBuffer) buckets.gradient(1);
      PreparedLaunch activate = prepare(module, "activate", hidden, hidden.count());
      PreparedLaunch derive = prepare(module, "derive", output, target, 1f / rows, output.count());
      PreparedLaunch back = prepare(module, "back", hiddenDelta, hidden, hidden.count());
      PreparedLaunch[] updates = {
        prepare(module, "update", w1, g1, RATE, w1.count()),
        prepare(module, "update", w2, g2, RATE, w2.count())
      };
      w1.copyFrom(random(INPUTS * HIDDEN)); // another start on each rank ...
      w2.copyFrom(random(HIDDEN * OUTPUTS));
      buckets.broadcast(List.of(w1, w2), 0); // ... becomes rank 0's
      double loss = 0;
      for (int step = 0; step < steps; step++) {
        readBatch(step);
        input.copyFrom(inputs);
        target.copyFrom(targets);

        blas.multiply(stream, input, w1, hidden, rows, INPUTS, HIDDEN);
        activate.launch(stream);
        blas.multiply(stream, hidden, w2, output, rows, HIDDEN, OUTPUTS);
        derive.launch(stream);

        product(blas, hidden, true, output, false, g2, HIDDEN, rows, OUTPUTS);
        buckets.ready(1); // enqueued, not done: the average waits for it on the GPU
        product(blas, output, false, w2, true, hiddenDelta, rows, OUTPUTS, HIDDEN);
        back.launch(stream);
        product(blas, input, true, hiddenDelta, false, g1, INPUTS, rows, HIDDEN);
        buckets.ready(0);
        buckets.finish(parameter -> updates[parameter].launch(stream));

        if (step % 100 == 99 || step == steps - 1) { // seldom: the CPU waits for the GPU here
          loss = loss(output);
          if (sync.rank() == 0) {
            System.out.printf("step %d, loss %.5f%n", step + 1, loss);
          }
        }
      }
      return loss;
    }
  }

  private CudaBuffer allocate(long count) {
    return gpu.allocate(DataType.FLOAT32, count, stream);
  }

  /** A launch with a thread for each element; the number of elements is the last argument. */
  private static PreparedLaunch prepare(CudaModule module, String kernel, Object... arguments) {
    long count = (long) arguments[arguments.length - 1];
    return module.kernel(kernel).prepare(Grid.covering(count, 256), arguments);
  }

  /** c = op(a) times op(b), where op transposes or does nothing. */
  private void product(
      CudaBlas blas,
      CudaBuffer a,
      boolean transposeA,
      CudaBuffer b,
      boolean transposeB,
      CudaBuffer c,
      int height,
      int inner,
      int width) {
    blas.multiply(stream, 1, a, transposeA, b, transposeB, 0, c, height, inner, width);
  }

  private float[] random(int count) {
    Random random = new Random(sync.rank());
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian() * 0.1f;
    }
    return values;
  }

  /** Where your data comes in: this rank's rows, which are every size-th one of the step's. */
  private void readBatch(int step) {
    for (int row = 0; row < rows; row++) {
      SplittableRandom random =
          new SplittableRandom((long) step * ROWS + row * sync.size() + sync.rank());
      for (int i = 0; i < INPUTS; i++) {
        float x = (float) random.nextDouble(-1, 1);
        inputs[row * INPUTS + i] = x;
        targets[row * OUTPUTS + i] = (float) Math.sin(3 * x);
      }
    }
  }

  /** The mean over all ranks' rows, of what derive has left of the outputs. */
  private double loss(CudaBuffer delta) {
    float[] values = new float[targets.length];
    delta.copyTo(values); // waits
    double[] sum = {0};
    for (float value : values) {
      sum[0] += 0.5 * value * value * rows;
    }
    sync.communicator().allReduce(DoubleBuffer.wrap(sum), ReduceOp.AVERAGE);
    return sum[0];
  }
}

package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Parameter;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.cuda.compute.PreparedLaunch;
import org.gradientsync.spi.Resources;

/**
 * The perceptron on a GPU, in FLOAT32. It uses the GPU's default stream and one for {@link
 * GpuDeltas}, with cuBLAS for products and the kernels in mlp.cu for the rest. A step allocates
 * nothing and does not wait. The same calls give the same bits.
 */
final class GpuMlp implements MlpEngine {
  private static final int THREADS = 256; // LOSS_THREADS in mlp.cu
  private static final int ELEMENTS_PER_THREAD = 4;
  private static final int MOST_LOSS_BLOCKS = 512;
  private static final int WORKSPACE_BYTES = 32 << 20; // NVIDIA's recommendation for Hopper

  private final CudaDevice gpu;
  private final CudaBlas blas;
  private final CudaStream stream;
  private final CudaModule module;
  private final int[] widths;
  private final int rows;
  private final int layers;
  private final List<CudaBuffer> memory = new ArrayList<>();
  private final List<CudaBuffer> weights = new ArrayList<>();

  /** The outputs of each layer. The forward pass replaces the last layer's with its delta. */
  private final CudaBuffer[] outputs;

  private final GpuDeltas deltas;

  private final PreparedLaunch[] relus;
  private final PreparedLaunch[] updates;
  private final Map<AdamPart, PreparedLaunch> adams = new IdentityHashMap<>();
  private final PreparedLaunch squares;
  private final CudaBuffer sums;
  private final List<CudaBuffer> inputs = new ArrayList<>();
  private final List<CudaBuffer> targets = new ArrayList<>();
  private final List<Repeated> forwards = new ArrayList<>();
  private final List<Backward> backwards = new ArrayList<>();
  private boolean graphs;
  private int forwarded = -1;

  /**
   * Creates an engine with weights of zero.
   *
   * @param gpu the GPU to use
   * @param widths the number of inputs, and the number of outputs of each layer
   * @param rows the number of rows of each batch
   * @param tf32 whether products may be rounded for the tensor cores
   */
  GpuMlp(CudaDevice gpu, int[] widths, int rows, boolean tf32) {
    this(gpu, CudaBlas.create(gpu), widths, rows, tf32);
  }

  /** Creates an engine on a cuBLAS that it will close. */
  GpuMlp(CudaDevice gpu, CudaBlas blas, int[] widths, int rows, boolean tf32) {
    this.gpu = gpu;
    this.blas = blas;
    this.widths = widths.clone();
    this.rows = rows;
    layers = widths.length - 1;
    stream = gpu.stream();
    outputs = new CudaBuffer[layers];
    relus = new PreparedLaunch[layers - 1];
    updates = new PreparedLaunch[layers];
    module = CudaModule.load(gpu, Kernels.ptx("mlp"));
    try {
      blas.setMathMode(tf32 ? CudaBlas.MathMode.TF32 : CudaBlas.MathMode.FLOAT32);
      blas.setWorkspace(stream, allocate(DataType.FLOAT32, WORKSPACE_BYTES / Float.BYTES));
      allocateLayers();
      prepareLayers();
      deltas =
          new GpuDeltas(
              gpu, blas, stream, weights, outputs, module, this.widths, rows, WORKSPACE_BYTES);
      long count = outputs[layers - 1].count();
      long blocks = Math.min(MOST_LOSS_BLOCKS, covering(count).blocksX());
      sums = allocate(DataType.FLOAT64, blocks);
      squares =
          module
              .kernel("loss")
              .prepare(
                  Grid.of((int) blocks, THREADS),
                  outputs[layers - 1],
                  outputs[layers - 1], // replaced by a batch's targets, see forward
                  sums,
                  2f / count,
                  count);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private CudaBuffer allocate(DataType type, long count) {
    CudaBuffer buffer = gpu.allocate(type, count, stream);
    memory.add(buffer);
    return buffer;
  }

  private void allocateLayers() {
    for (int layer = 0; layer < layers; layer++) {
      weights.add(allocate(DataType.FLOAT32, (long) widths[layer + 1] * widths[layer]));
      outputs[layer] = allocate(DataType.FLOAT32, (long) rows * widths[layer + 1]);
    }
  }

  private void prepareLayers() {
    for (int layer = 0; layer < layers; layer++) {
      if (layer < layers - 1) {
        CudaBuffer output = outputs[layer];
        relus[layer] =
            module.kernel("relu").prepare(covering(output.count()), output, output.count());
      }
      CudaBuffer own = weights.get(layer);
      backwards.add(new Backward(layer, false));
      backwards.add(new Backward(layer, true));
      updates[layer] =
          module
              .kernel("update")
              .prepare(
                  covering(own.count()),
                  own,
                  own, // replaced by the gradient, see update
                  0f,
                  own.count());
    }
  }

  /** Returns a grid for a kernel of mlp.cu over a number of elements. */
  static Grid covering(long count) {
    return Grid.covering((count + ELEMENTS_PER_THREAD - 1) / ELEMENTS_PER_THREAD, THREADS);
  }

  @Override
  public List<Parameter> parameters() {
    List<Parameter> parameters = new ArrayList<>();
    for (int layer = 0; layer < layers; layer++) {
      parameters.add(new Parameter("layer" + layer, DataType.FLOAT32, weights.get(layer).count()));
    }
    return parameters;
  }

  @Override
  public List<DeviceBuffer> weights() {
    return List.copyOf(weights);
  }

  @Override
  public void useWeights(List<DeviceBuffer> newWeights) {
    for (int layer = 0; layer < layers; layer++) {
      CudaBuffer own = weights.get(layer);
      CudaBuffer other = (CudaBuffer) newWeights.get(layer);
      weights.set(layer, other); // of the deltas, too
      updates[layer].set(0, other);
      memory.remove(own);
      own.close();
    }
  }

  @Override
  public void load(int batch, double[] newInputs, double[] newTargets) {
    load(inputs, batch, newInputs, widths[0]);
    load(targets, batch, newTargets, widths[layers]);
    if (batch == forwards.size()) {
      forwards.add(new Repeated(stream, () -> enqueueForward(batch)));
    }
  }

  private void load(List<CudaBuffer> batches, int batch, double[] values, int width) {
    if (values.length != (long) rows * width || batch < 0 || batch > batches.size()) {
      throw new IllegalArgumentException(
          "batch does not fit: batch=%s, loaded=%s, elements=%s, rows=%s, width=%s"
              .formatted(batch, batches.size(), values.length, rows, width));
    }
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) values[i];
    }
    if (batch == batches.size()) {
      batches.add(allocate(DataType.FLOAT32, floats.length));
    }
    batches.get(batch).copyFrom(floats);
  }

  /**
   * From now on runs each repeated pass, with the same batch or the same gradient and scale, as one
   * graph. Off at first. The second run of a pass captures it; meanwhile no other thread may use
   * the GPU's stream.
   */
  void useGraphs() {
    graphs = true;
    deltas.useGraphs();
  }

  @Override
  public void forward(int batch) {
    if (graphs) {
      forwards.get(batch).enqueue();
    } else {
      enqueueForward(batch);
    }
    forwarded = batch;
  }

  private void enqueueForward(int batch) {
    CudaBuffer input = inputs.get(batch);
    for (int layer = 0; layer < layers; layer++) {
      CudaBuffer output = outputs[layer];
      CudaBuffer weight = weights.get(layer);
      blas.multiply(
          stream, 1, input, false, weight, true, 0, output, rows, widths[layer], widths[layer + 1]);
      if (layer < layers - 1) {
        relus[layer].launch(stream);
      }
      input = output;
    }
    squares.set(1, targets.get(batch)).launch(stream); // includes the last layer's relu
  }

  @Override
  public void backward(int layer, DeviceBuffer gradient, double scale, boolean accumulate) {
    requireForward();
    CudaBuffer target = (CudaBuffer) gradient;
    if (layer > 0) {
      deltas.enqueue(layer - 1); // first, so that the next layer's delta can start early
    }
    deltas.await(layer);
    if (graphs && layer > 0) { // the first layer's gradient depends on the batch
      target.requireOpen();
      backwards.get(2 * layer + (accumulate ? 1 : 0)).enqueue(target, scale);
    } else {
      enqueueGradient(layer, target, scale, accumulate);
    }
    deltas.release(layer);
  }

  /** One layer's part of the backward pass, with its last arguments. */
  private final class Backward {
    private final Repeated repeated;
    private CudaBuffer gradient;
    private double scale;

    private Backward(int layer, boolean accumulate) {
      repeated = new Repeated(stream, () -> enqueueGradient(layer, gradient, scale, accumulate));
    }

    private void enqueue(CudaBuffer newGradient, double newScale) {
      if (newGradient != gradient || newScale != scale) {
        repeated.close();
        gradient = newGradient;
        scale = newScale;
      }
      repeated.enqueue();
    }
  }

  private void enqueueGradient(int layer, CudaBuffer gradient, double scale, boolean accumulate) {
    CudaBuffer input = layer == 0 ? inputs.get(forwarded) : outputs[layer - 1];
    double beta = accumulate ? 1 : 0;
    blas.multiply(
        stream,
        scale,
        deltas.get(layer),
        true,
        input,
        false,
        beta,
        gradient,
        widths[layer + 1],
        rows,
        widths[layer]);
  }

  @Override
  public void update(int layer, DeviceBuffer gradient, double rate) {
    CudaBuffer weight = weights.get(layer);
    if (gradient.type() != weight.type() || gradient.count() != weight.count()) {
      throw new IllegalArgumentException(
          "gradient does not fit: gradient=" + gradient + ", weights=" + weight);
    }
    if (layer > 0) {
      deltas.await(layer - 1); // it reads these weights
    }
    updates[layer].set(1, (CudaBuffer) gradient).set(2, (float) rate).launch(stream);
  }

  @Override
  public void adam(AdamPart part, double rate, double correction) {
    PreparedLaunch launch = adams.get(part);
    if (launch == null) {
      launch =
          module
              .kernel("adam")
              .prepare(
                  Grid.covering(part.weight().count(), THREADS),
                  part.weight(),
                  part.gradient(),
                  part.means(),
                  part.squares(),
                  0f,
                  0f,
                  part.weight().count());
      adams.put(part, launch);
    }
    launch.set(4, (float) rate).set(5, (float) correction).launch(stream);
  }

  @Override
  public double loss() {
    requireForward();
    double[] parts = new double[(int) sums.count()];
    sums.copyTo(parts);
    double sum = 0;
    for (double part : parts) {
      sum += part;
    }
    return sum / outputs[layers - 1].count();
  }

  private void requireForward() {
    if (forwarded < 0) {
      throw new IllegalStateException("there was no forward pass yet: gpu=" + gpu);
    }
  }

  /** Waits until the enqueued work is done. */
  @Override
  public void close() {
    if (!gpu.isClosed()) {
      stream.await();
      if (deltas != null) {
        deltas.await();
      }
    }
    forwards.forEach(Repeated::close);
    backwards.forEach(each -> each.repeated.close());
    blas.close();
    module.close();
    if (deltas != null) {
      deltas.close();
    }
    memory.forEach(CudaBuffer::close);
  }
}

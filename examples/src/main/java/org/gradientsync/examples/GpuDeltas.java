package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaKernel;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.PreparedLaunch;
import org.gradientsync.spi.Resources;

/**
 * A backward pass's deltas: the loss's derivatives by each layer's products. Each one needs the one
 * of the layer above, and nothing needs a gradient. So deltas have a stream of their own, beside
 * the gradients: what one product's last blocks leave free of the GPU, the other's first blocks
 * take. With one stream a product for which a few processors are missing, because averages have
 * them, takes a turn more, and most of the GPU has nothing to do in it.
 */
final class GpuDeltas implements AutoCloseable {
  /** How many take turns in memory: enough that a delta seldom waits for a gradient. */
  private static final int TURNS = 3;

  private final CudaBlas blas;
  private final CudaStream gradients;
  private final CudaStream stream;
  private final CudaEvent passed;
  private final List<CudaBuffer> weights;
  private final int[] widths;
  private final int rows;
  private final int last;
  private final CudaBuffer[] deltas;
  private final PreparedLaunch[] masks;
  private final List<CudaEvent> ready = new ArrayList<>();
  private final List<CudaEvent> read = new ArrayList<>();
  private final List<Repeated> repeated = new ArrayList<>();
  private final List<AutoCloseable> parts = new ArrayList<>();
  private boolean graphs;

  /**
   * Deltas of zero.
   *
   * @param gradients the stream of everything else
   * @param weights each layer's
   * @param outputs each layer's; the last one's end, in the forward pass, as its delta
   * @param module has the kernel {@code mask}, which makes a delta 0 where the output is
   * @param widths the inputs, and the outputs of each layer
   */
  GpuDeltas(
      CudaDevice gpu,
      CudaBlas blas,
      CudaStream gradients,
      List<CudaBuffer> weights,
      CudaBuffer[] outputs,
      CudaModule module,
      int[] widths,
      int rows,
      int workspaceBytes) {
    this.blas = blas;
    this.gradients = gradients;
    this.weights = weights;
    this.widths = widths;
    this.rows = rows;
    last = outputs.length - 1;
    deltas = outputs.clone();
    masks = new PreparedLaunch[last];
    try {
      stream = keep(gpu.createStream());
      passed = keep(gpu.createEvent(false));
      blas.setWorkspace(
          stream, keep(gpu.allocate(DataType.FLOAT32, workspaceBytes / Float.BYTES, stream)));
      long widest = 0;
      for (int layer = 0; layer < last; layer++) {
        widest = Math.max(widest, outputs[layer].count());
      }
      for (int turn = 0; turn < Math.min(TURNS, last); turn++) {
        CudaBuffer memory = keep(gpu.allocate(DataType.FLOAT32, widest, stream));
        for (int layer = turn; layer < last; layer += TURNS) {
          deltas[layer] = (CudaBuffer) memory.slice(0, outputs[layer].count());
        }
      }
      CudaKernel mask = module.kernel("mask");
      for (int layer = 0; layer < last; layer++) {
        long count = outputs[layer].count();
        masks[layer] = mask.prepare(GpuMlp.covering(count), deltas[layer], outputs[layer], count);
        int own = layer;
        ready.add(keep(gpu.createEvent(false)));
        read.add(keep(gpu.createEvent(false)));
        repeated.add(keep(new Repeated(stream, () -> compute(own))));
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private <T extends AutoCloseable> T keep(T part) {
    parts.add(0, part);
    return part;
  }

  CudaBuffer get(int layer) {
    return deltas[layer];
  }

  void useGraphs() {
    graphs = true;
  }

  /** Enqueues the delta of a layer below the last, after that of the layer above. */
  void enqueue(int layer) {
    if (layer == last - 1) {
      passed.record(gradients);
      stream.waitFor(passed);
    } else if (layer + TURNS < last) {
      stream.waitFor(read.get(layer + TURNS)); // this delta takes its memory
    }
    if (graphs) {
      repeated.get(layer).enqueue();
    } else {
      compute(layer);
    }
    ready.get(layer).record(stream);
  }

  private void compute(int layer) {
    blas.multiply(
        stream,
        1,
        deltas[layer + 1],
        false,
        weights.get(layer + 1),
        false,
        0,
        deltas[layer],
        rows,
        widths[layer + 2],
        widths[layer + 1]);
    masks[layer].launch(stream);
  }

  /** Lets what is enqueued for the gradients from now on find a layer's delta. */
  void await(int layer) {
    if (layer < last) {
      gradients.waitFor(ready.get(layer));
    }
  }

  /** What has been enqueued for the gradients was the last that reads a layer's delta. */
  void release(int layer) {
    if (layer < last) {
      read.get(layer).record(gradients);
    }
  }

  /** Waits until what it enqueued is done. */
  void await() {
    stream.await();
  }

  /** After cuBLAS is closed, which works on its stream. */
  @Override
  public void close() {
    Resources.closeAll(parts);
    parts.clear();
  }
}

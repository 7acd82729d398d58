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
 * Computes the deltas of a backward pass: the derivatives of the loss with respect to each layer's
 * products. A delta needs the delta of the layer above, but no gradient. So the deltas have their
 * own stream beside the gradients', and the first blocks of one product use what the last blocks of
 * another leave free. With one stream, a product that lacks a few SMs, because averages use them,
 * takes one more wave in which most of the GPU is idle.
 */
final class GpuDeltas implements AutoCloseable {
  /** The number of delta buffers in rotation. With three, a delta seldom waits for a gradient. */
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
   * Creates deltas of zero.
   *
   * @param gradients the stream of all other work
   * @param weights the weights of each layer
   * @param outputs the outputs of each layer; the forward pass replaces those of the last layer
   *     with its delta
   * @param module has the kernel {@code mask}, which sets a delta to 0 where the output is 0
   * @param widths the number of inputs, and the number of outputs of each layer
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

  /** Enqueues the delta of a layer below the last one. Call it after the layer above. */
  void enqueue(int layer) {
    if (layer == last - 1) {
      passed.record(gradients);
      stream.waitFor(passed);
    } else if (layer + TURNS < last) {
      stream.waitFor(read.get(layer + TURNS)); // this delta reuses its memory
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

  /** Makes later work on the gradients' stream wait for a layer's delta. */
  void await(int layer) {
    if (layer < last) {
      gradients.waitFor(ready.get(layer));
    }
  }

  /** Marks the end of the enqueued work that reads a layer's delta. */
  void release(int layer) {
    if (layer < last) {
      read.get(layer).record(gradients);
    }
  }

  /** Waits until the enqueued work is done. */
  void await() {
    stream.await();
  }

  /** Closes the stream. Close cuBLAS first, because it works on this stream. */
  @Override
  public void close() {
    Resources.closeAll(parts);
    parts.clear();
  }
}

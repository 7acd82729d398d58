package org.gradientsync.examples;

import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;

/**
 * Work that is enqueued in the same way again and again. The first run enqueues it step by step, so
 * that everything is loaded. The second run captures it. Later runs launch the graph, which costs
 * the host one launch.
 */
final class Repeated implements AutoCloseable {
  private final CudaStream stream;
  private final Runnable work;
  private CudaGraph graph;
  private boolean loaded;

  /**
   * Creates work without enqueueing it.
   *
   * @param stream the stream of the work; no other thread may use it during the capture
   * @param work enqueues the work on the stream, without waiting or allocating on the GPU
   */
  Repeated(CudaStream stream, Runnable work) {
    this.stream = stream;
    this.work = work;
  }

  void enqueue() {
    if (!loaded) {
      loaded = true;
      work.run();
      return;
    }
    if (graph == null) {
      stream.beginCapture();
      try {
        work.run();
      } catch (RuntimeException | Error e) {
        try {
          stream.endCapture().close();
        } catch (RuntimeException consequence) {
          e.addSuppressed(consequence);
        }
        throw e;
      }
      graph = stream.endCapture();
    }
    graph.launch(stream);
  }

  /** Discards the graph, because the work has changed. */
  @Override
  public void close() {
    loaded = false;
    if (graph != null) {
      graph.close();
      graph = null;
    }
  }
}

package org.gradientsync.examples;

import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;

/**
 * Work that is enqueued in the same way again and again: the first time step by step, so that
 * everything is loaded, the second time captured, and from then on as a graph, which costs the host
 * one launch.
 */
final class Repeated implements AutoCloseable {
  private final CudaStream stream;
  private final Runnable work;
  private CudaGraph graph;
  private boolean loaded;

  /**
   * Not yet enqueued.
   *
   * @param stream where it is enqueued; no other thread may use it meanwhile
   * @param work enqueues there, and neither waits nor allocates on the GPU
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

  /** Forgets it, because it has changed. */
  @Override
  public void close() {
    loaded = false;
    if (graph != null) {
      graph.close();
      graph = null;
    }
  }
}

package org.gradientsync;

/**
 * Work of one device that is done in the order in which it was enqueued, beside the work of the
 * device's other streams: a CUDA stream on a GPU. On the host every call is finished when it
 * returns, so there is nothing to wait for.
 */
public interface Stream extends AutoCloseable {
  /**
   * Lets what is enqueued here later wait for an event of another stream. Does not block the host.
   *
   * @param event of the same device; one that was never recorded is waited for by nobody
   */
  void waitFor(Event event);

  /** Blocks the host until everything enqueued so far is done. */
  void await();

  /**
   * Whether what is enqueued here is only noted for a graph, so that its events have no times.
   *
   * @return false where there are no graphs
   */
  default boolean isCapturing() {
    return false;
  }

  /** Gives it up; what is enqueued is still done. A second call does nothing. */
  @Override
  void close();
}

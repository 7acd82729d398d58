package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUgraph;
import jcuda.driver.CUstream;
import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.spi.Resources;

/**
 * A stream of work on one GPU. What is enqueued on a stream runs in order; the host does not wait
 * for it.
 *
 * <p>Safe for use by several threads; the order of their calls is then theirs to keep.
 */
public final class CudaStream implements Stream {
  /** A call that was captured: what else is to be done each time that its graph is launched. */
  interface Replay {
    /** Held from {@link #check} until {@link #launched} or {@link #failed}. */
    Object lock();

    /** The same for all replays with the same lock, and larger for locks to be taken later. */
    long order();

    /**
     * The graph is about to be launched. Allocates nothing.
     *
     * @throws RuntimeException if it must not be launched any more
     */
    void check();

    /**
     * It is launched next. Allocates nothing.
     *
     * @param stream where
     */
    void replays(CudaStream stream);

    /** It has been launched. Allocates nothing. */
    void launched();

    /** The driver has refused something of it; returns what to throw. */
    RuntimeException failed(CudaException e);
  }

  private final CudaDevice device;
  private final CUstream stream;
  private final boolean own;
  private final boolean beside;
  private boolean closed;

  /** What belongs to the graph that {@link #beginCapture} has begun, or null. */
  private List<Replay> replays;

  CudaStream(CudaDevice device, CUstream stream, boolean own) {
    this(device, stream, own, false);
  }

  /**
   * A stream.
   *
   * @param own whether closing destroys it
   * @param beside whether its kernels are to leave most of the GPU to other streams
   */
  CudaStream(CudaDevice device, CUstream stream, boolean own, boolean beside) {
    this.device = device;
    this.stream = stream;
    this.own = own;
    this.beside = beside;
  }

  /**
   * The GPU that it belongs to.
   *
   * @return its device
   */
  public CudaDevice device() {
    return device;
  }

  /** Waits until everything enqueued so far is done. */
  @Override
  public void await() {
    device.await(handle(), null);
  }

  /**
   * Lets what is enqueued here later wait for an event.
   *
   * @param event recorded on any stream, of this GPU or another
   */
  public void waitFor(CudaEvent event) {
    device.makeCurrent();
    device.api().streamWaitsFor(handle(), event.handle());
  }

  @Override
  public void waitFor(Event event) {
    waitFor((CudaEvent) event);
  }

  /**
   * Begins a graph: what is enqueued here until {@link #endCapture()} is noted and not run. The
   * calling thread may enqueue on this stream, and on streams that wait for it, but neither wait
   * for them nor allocate; that makes the capture fail. Other threads may do what they like, but
   * not on these streams.
   *
   * @throws IllegalStateException if this stream is being captured already
   * @throws CudaException if the driver does not capture this stream
   */
  public void beginCapture() {
    if (isCapturing()) {
      throw new IllegalStateException("stream is being captured already: device=" + device);
    }
    device.api().beginCapture(stream);
    replays = new ArrayList<>();
  }

  /**
   * Notes what is to be done when the graph is launched that is being captured here.
   *
   * @return false if {@link #beginCapture} has not begun it on this stream: nobody will do it
   */
  boolean atReplay(Replay replay) {
    List<Replay> known = replays;
    if (known != null) {
      known.add(replay);
    }
    return known != null;
  }

  /**
   * Ends the graph that {@link #beginCapture()} began, on the same thread. From now on the stream
   * runs what is enqueued, even if the capture has failed.
   *
   * @return the graph, which the caller closes
   * @throws IllegalStateException if this stream is not being captured, or nothing was enqueued
   * @throws CudaException if something that cannot be captured was asked for in between
   */
  public CudaGraph endCapture() {
    if (!isCapturing()) {
      throw new IllegalStateException("stream is not being captured: device=" + device);
    }
    CudaApi api = device.api();
    List<Replay> known = replays == null ? List.of() : replays;
    replays = null;
    CUgraph graph = captured();
    try {
      if (api.nodes(graph) == 0) {
        throw new IllegalStateException(
            "nothing was captured: device="
                + device
                + "; enqueue on this stream between beginCapture and endCapture");
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(graph));
      throw e;
    }
    return new CudaGraph(device, CudaGraph.instantiate(api, graph), known);
  }

  private CUgraph captured() {
    try {
      return device.api().endCapture(stream);
    } catch (CudaException e) {
      throw new CudaException(
          e.getMessage()
              + ", device="
              + device
              + "; between beginCapture and endCapture enqueue only, and end it on the same thread",
          e.code());
    }
  }

  /**
   * Whether what is enqueued here is being noted for a graph.
   *
   * @return true from {@link #beginCapture()} to {@link #endCapture()}, even if the capture has
   *     failed in between
   */
  @Override
  public boolean isCapturing() {
    device.makeCurrent();
    return device.api().isCapturing(handle());
  }

  boolean isBeside() {
    return beside;
  }

  boolean isClosed() {
    return closed;
  }

  CUstream handle() {
    if (closed) {
      throw new IllegalStateException("stream is closed: device=" + device.name());
    }
    return stream;
  }

  /**
   * Destroys the stream, if it was made here; what is enqueued still runs. A second call does
   * nothing.
   */
  @Override
  public void close() {
    if (!closed) {
      Resources.closeAll(
          () -> device.beforeClose(this),
          () -> closed = true,
          own ? device::makeCurrent : null,
          own ? () -> device.api().destroyStream(stream) : null);
    }
  }
}

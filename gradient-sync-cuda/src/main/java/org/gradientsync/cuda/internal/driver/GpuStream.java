package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.spi.Resources;

/** A stream of one GPU. {@code CudaStream} is the public class for it. */
public final class GpuStream implements AutoCloseable {
  /** A captured call: what the host does for it at each launch of the graph. */
  public interface Replay {
    /** The lock to hold from {@link #check} to {@link #launched} or {@link #failed}. */
    Object lock();

    /** The lock's place in the locking order: locks are taken in ascending order. */
    long order();

    /**
     * Checks that the graph may be launched. Allocates nothing.
     *
     * @throws RuntimeException if it must not be launched any more
     */
    void check();

    /**
     * Called just before the launch. Allocates nothing.
     *
     * @param stream the stream that the graph is launched on
     */
    void replays(GpuStream stream);

    /** Called after the launch. Allocates nothing. */
    void launched();

    /** Called if the driver reports an error. Returns the exception to throw. */
    RuntimeException failed(DeviceException e);
  }

  private final Gpu gpu;
  private final CUstream stream;
  private final boolean own;
  private final boolean sparing;
  private boolean closed;

  /** The library's calls in the graph being captured; null if no capture began here. */
  private List<Replay> replays;

  /**
   * Creates a stream.
   *
   * @param own whether closing this destroys the driver's stream
   * @param sparing whether its kernels must leave a part of the GPU to other streams
   */
  private GpuStream(Gpu gpu, CUstream stream, boolean own, boolean sparing) {
    this.gpu = gpu;
    this.stream = stream;
    this.own = own;
    this.sparing = sparing;
  }

  /** Creates a stream that does not wait for CUDA's default stream. */
  public static GpuStream create(Gpu gpu) {
    gpu.makeCurrent();
    return new GpuStream(gpu, gpu.api().createStream(), true, false).warmedUp();
  }

  /** Creates a stream of the highest priority. */
  public static GpuStream createUrgent(Gpu gpu, boolean sparing) {
    gpu.makeCurrent();
    return new GpuStream(gpu, gpu.api().createUrgentStream(), true, sparing).warmedUp();
  }

  private GpuStream warmedUp() {
    if (gpu.warmsUpStreams()) {
      try {
        warmUp();
      } catch (RuntimeException | Error e) {
        Resources.closeAllAfter(e, this);
        throw e;
      }
    }
    return this;
  }

  /** Runs a kernel that does nothing, and waits for it. See {@link Gpu#warmUpStreams}. */
  public void warmUp() {
    gpu.makeCurrent();
    gpu.kernels().reduce().runNothing(handle());
    await();
  }

  /** Wraps another library's stream. */
  public static GpuStream wrap(Gpu gpu, long handle) {
    gpu.makeCurrent();
    return new GpuStream(gpu, gpu.api().streamOf(handle), false, false);
  }

  public Gpu gpu() {
    return gpu;
  }

  public CUstream handle() {
    if (closed) {
      throw new IllegalStateException("stream is closed: device=" + gpu.name());
    }
    return stream;
  }

  public boolean hasHandle(CUstream other) {
    return stream == other;
  }

  public boolean isClosed() {
    return closed;
  }

  public boolean isSparing() {
    return sparing;
  }

  public void requireOn(Gpu expected) {
    if (gpu != expected) {
      throw new IllegalArgumentException(
          "stream belongs to another device: stream=" + gpu + ", device=" + expected);
    }
  }

  public void await() {
    gpu.waits().await(handle(), null);
  }

  /** Records an event after the work enqueued here so far. */
  public void record(GpuEvent event) {
    gpu.makeCurrent();
    gpu.api().record(event.handle(), handle());
  }

  /** Makes work enqueued here later wait for an event of this GPU or another. */
  public void waitFor(GpuEvent event) {
    gpu.makeCurrent();
    gpu.api().streamWaitsFor(handle(), event.handle());
  }

  /** Allocates zeroed memory for the library's own use, and waits until it is zeroed. */
  public long allocateZeroed(long bytes) {
    gpu.makeCurrent();
    long address = gpu.memory().allocate(bytes);
    try {
      gpu.api().fillZero(address, bytes, handle());
      await();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> gpu.memory().free(address));
      throw e;
    }
    return address;
  }

  public boolean isCapturing() {
    gpu.makeCurrent();
    return gpu.api().isCapturing(handle());
  }

  /** Begins a capture, and collects the library's calls in it. */
  public void beginCapture() {
    gpu.api().beginCapture(stream);
    replays = new ArrayList<>();
  }

  /**
   * Adds a call to the graph that is being captured here. Returns false if {@link #beginCapture}
   * did not begin the capture on this stream, so that the call will not be replayed.
   */
  public boolean atReplay(Replay replay) {
    List<Replay> added = replays;
    if (added != null) {
      added.add(replay);
    }
    return added != null;
  }

  /** Returns the calls that {@link #atReplay} has added, and stops collecting. */
  public List<Replay> takeReplays() {
    List<Replay> added = replays == null ? List.of() : replays;
    replays = null;
    return added;
  }

  /** Destroys the stream, unless it wraps another library's. Work enqueued earlier still runs. */
  @Override
  public void close() {
    if (!closed) {
      Resources.closeAll(
          () -> gpu.waits().beforeClose(stream),
          () -> closed = true,
          own ? gpu::makeCurrent : null,
          own ? () -> gpu.api().destroyStream(stream) : null);
    }
  }
}

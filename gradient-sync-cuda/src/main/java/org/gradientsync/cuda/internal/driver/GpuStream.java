package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUstream;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.spi.Resources;

/** A stream of one GPU; what stands behind {@code CudaStream}. */
public final class GpuStream implements AutoCloseable {
  /** A captured call: what else is to be done each time that its graph is launched. */
  public interface Replay {
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
    void replays(GpuStream stream);

    /** It has been launched. Allocates nothing. */
    void launched();

    /** The driver has refused something of it; returns what to throw. */
    RuntimeException failed(CudaException e);
  }

  private final Gpu gpu;
  private final CUstream stream;
  private final boolean own;
  private final boolean sparing;
  private boolean closed;

  /** The calls in the graph that is being captured here through the library, or null. */
  private List<Replay> replays;

  /**
   * A stream.
   *
   * @param own whether closing destroys it
   * @param sparing whether its kernels are to leave most of the GPU to other streams
   */
  private GpuStream(Gpu gpu, CUstream stream, boolean own, boolean sparing) {
    this.gpu = gpu;
    this.stream = stream;
    this.own = own;
    this.sparing = sparing;
  }

  /** A new stream, which does not wait for the default stream. */
  public static GpuStream create(Gpu gpu) {
    gpu.makeCurrent();
    return new GpuStream(gpu, gpu.api().createStream(), true, false);
  }

  /** A new stream whose kernels are placed before those of the others that wait for room. */
  public static GpuStream createUrgent(Gpu gpu, boolean sparing) {
    gpu.makeCurrent();
    return new GpuStream(gpu, gpu.api().createUrgentStream(), true, sparing);
  }

  /** Another library's stream, by its handle. */
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

  /** Places an event behind what is enqueued here so far. */
  public void record(GpuEvent event) {
    gpu.makeCurrent();
    gpu.api().record(event.handle(), handle());
  }

  /** Lets what is enqueued here later wait for an event, of this GPU or another. */
  public void waitFor(GpuEvent event) {
    gpu.makeCurrent();
    gpu.api().streamWaitsFor(handle(), event.handle());
  }

  /** Device memory for the library's own use, all zeros. */
  public long allocateZeroed(long bytes) {
    gpu.makeCurrent();
    long address = gpu.memory().allocate(bytes);
    try {
      gpu.api().fillZero(address, bytes, handle());
      await();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> gpu.api().free(address));
      throw e;
    }
    return address;
  }

  public boolean isCapturing() {
    gpu.makeCurrent();
    return gpu.api().isCapturing(handle());
  }

  /** From now on work is noted, and so are the calls in it. */
  public void beginCapture() {
    gpu.api().beginCapture(stream);
    replays = new ArrayList<>();
  }

  /**
   * Notes what is to be done when the graph is launched that is being captured here.
   *
   * @return false if {@link #beginCapture} has not begun it on this stream: nobody will do it
   */
  public boolean atReplay(Replay replay) {
    List<Replay> known = replays;
    if (known != null) {
      known.add(replay);
    }
    return known != null;
  }

  /** What {@link #atReplay} has noted; from now on it notes nothing. */
  public List<Replay> takeReplays() {
    List<Replay> known = replays == null ? List.of() : replays;
    replays = null;
    return known;
  }

  /** Destroys the stream, if it was made here; what is enqueued still runs. */
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

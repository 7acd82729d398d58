package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUevent;
import org.gradientsync.spi.Resources;

/** An event of one GPU. {@code CudaEvent} is the public class for it. */
public final class GpuEvent implements AutoCloseable {
  private final Gpu gpu;
  private final CUevent event;
  private boolean closed;

  private GpuEvent(Gpu gpu, CUevent event) {
    this.gpu = gpu;
    this.event = event;
  }

  public static GpuEvent create(Gpu gpu, boolean timing) {
    gpu.makeCurrent();
    return new GpuEvent(gpu, gpu.api().createEvent(timing));
  }

  public CUevent handle() {
    if (closed) {
      throw new IllegalStateException("event is closed: device=" + gpu.name());
    }
    return event;
  }

  public void await() {
    gpu.waits().await(null, handle());
  }

  public boolean isDone() {
    gpu.makeCurrent();
    return gpu.api().isDone(handle());
  }

  public float millisecondsTo(GpuEvent end) {
    gpu.makeCurrent();
    return gpu.api().milliseconds(handle(), end.handle());
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      Resources.closeAll(gpu::makeCurrent, () -> gpu.api().destroyEvent(event));
    }
  }
}

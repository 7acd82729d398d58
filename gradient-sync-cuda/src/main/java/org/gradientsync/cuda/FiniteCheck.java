package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import org.gradientsync.host.HostBuffers;

/** Looks for what is not finite in a buffer and waits for the answer. */
final class FiniteCheck implements AutoCloseable {
  private final CudaDevice device;
  private final FiniteKernel kernel;
  private final ByteBuffer found = HostBuffers.allocate(Long.BYTES);

  FiniteCheck(CudaDevice device) {
    this.device = device;
    device.api().pageLock(found);
    try {
      kernel = new FiniteKernel(device);
    } catch (RuntimeException | Error e) {
      device.api().pageUnlock(found);
      throw e;
    }
  }

  /** The index of one such element, or -1. */
  synchronized long first(CudaBuffer buffer) {
    found.putLong(0, 0);
    kernel.launch(buffer, device.api().deviceAddress(found));
    buffer.stream().await();
    return found.getLong(0) - 1;
  }

  @Override
  public void close() {
    try {
      kernel.close();
    } finally {
      device.api().pageUnlock(found);
    }
  }
}

package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import org.gradientsync.host.HostBuffers;

/** Looks for what is not finite in a buffer and waits for the answer. */
final class FiniteCheck implements AutoCloseable {
  private static final int CALL = Long.BYTES;

  private final CudaDevice device;
  private final FiniteKernel kernel;
  private final ByteBuffer report = HostBuffers.allocate(FiniteKernel.REPORT_BYTES);

  FiniteCheck(CudaDevice device) {
    this.device = device;
    device.api().pageLock(report);
    try {
      kernel = new FiniteKernel(device);
    } catch (RuntimeException | Error e) {
      device.api().pageUnlock(report);
      throw e;
    }
  }

  /** The index of one such element, or -1. */
  synchronized long first(CudaBuffer buffer) {
    report.putLong(CALL, 0);
    kernel.launch(buffer, 0, 1, device.api().deviceAddress(report));
    buffer.stream().await();
    return report.getLong(CALL) == 0 ? -1 : FiniteKernel.indexOf(report.getLong(0));
  }

  @Override
  public void close() {
    try {
      kernel.close();
    } finally {
      device.api().pageUnlock(report);
    }
  }
}

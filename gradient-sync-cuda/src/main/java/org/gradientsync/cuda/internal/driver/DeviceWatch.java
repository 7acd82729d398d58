package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUstream;

/** Who has kernels on a device that can wait in vain, and so looks when the host waits for it. */
public interface DeviceWatch {
  /**
   * Called ten times a second while the host waits for the device, on the thread that waits.
   *
   * @param nanos since it began
   * @throws org.gradientsync.GradientSyncException if waiting is in vain
   */
  default void whileWaiting(long nanos) {}

  /**
   * Called when the host has waited for the device, but for {@link GpuWaits#awaitEnd}.
   *
   * @throws org.gradientsync.GradientSyncException if not all went well
   */
  default void afterWaiting() {}

  /** Called before a stream of the device is closed. */
  default void closes(CUstream stream) {}
}

package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUstream;

/** Watches the host's waits for a device whose kernels may wait for ranks that never come. */
public interface DeviceWatch {
  /**
   * Called ten times a second while the host waits for the device, on the waiting thread.
   *
   * @param nanos the nanoseconds since the wait began
   * @throws org.gradientsync.GradientSyncException to end a wait that could last forever
   */
  default void whileWaiting(long nanos) {}

  /**
   * Called after the host has waited for the device, except after {@link GpuWaits#awaitEnd}.
   *
   * @throws org.gradientsync.GradientSyncException if a call on the device has failed
   */
  default void afterWaiting() {}

  /** Called before a stream of the device is closed. */
  default void closes(CUstream stream) {}
}

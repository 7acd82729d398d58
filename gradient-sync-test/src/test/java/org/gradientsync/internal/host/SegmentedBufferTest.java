package org.gradientsync.internal.host;

import org.gradientsync.spi.BackendDevice;
import org.gradientsync.test.contract.DeviceBufferContract;

/**
 * The buffer contract over memory in many small segments, as large buffers have it in few large
 * ones.
 */
class SegmentedBufferTest extends DeviceBufferContract {
  @Override
  protected BackendDevice openDevice() {
    return new HostDevice(64);
  }
}

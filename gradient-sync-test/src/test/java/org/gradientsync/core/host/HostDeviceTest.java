package org.gradientsync.core.host;

import org.gradientsync.spi.BackendDevice;
import org.gradientsync.test.contract.DeviceBufferContract;

/** Runs the buffer contract on host memory. */
class HostDeviceTest extends DeviceBufferContract {
  @Override
  protected BackendDevice openDevice() {
    return new HostDevice();
  }
}

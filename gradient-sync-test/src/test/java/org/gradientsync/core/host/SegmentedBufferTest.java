package org.gradientsync.core.host;

import org.gradientsync.spi.BackendDevice;
import org.gradientsync.test.contract.DeviceBufferContract;

/**
 * Runs the buffer contract on memory in many small segments. Large buffers have a few large
 * segments.
 */
class SegmentedBufferTest extends DeviceBufferContract {
  @Override
  protected BackendDevice openDevice() {
    return new HostDevice(64);
  }
}

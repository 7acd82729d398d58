package org.gradientsync.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.contract.DeviceBufferContract;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.Test;

/** The buffer contract for host memory, and what is the host's own. */
class HostBufferTest extends DeviceBufferContract {
  @Override
  protected BackendDevice openDevice() {
    return new HostDevice();
  }

  @Test
  void wrapsMemoryInPlace() {
    HostDevice device = new HostDevice();
    ByteBuffer memory = ByteBuffer.allocateDirect(20).order(ByteOrder.nativeOrder());
    memory.position(4).limit(16);
    DeviceBuffer buffer = device.wrap(DataType.INT32, memory);
    assertEquals(3, buffer.count());
    buffer.copyFrom(new int[] {1, 2, 3});
    assertEquals(1, memory.getInt(4));
    assertEquals(3, memory.getInt(12));
    buffer.close();
    assertEquals(3, memory.getInt(12));
  }

  @Test
  void refusesMemoryThatItCannotUse() {
    HostDevice device = new HostDevice();
    ByteBuffer direct = ByteBuffer.allocateDirect(10);
    assertThrows(IllegalArgumentException.class, () -> device.wrap(DataType.INT32, direct));
    assertThrows(
        IllegalArgumentException.class,
        () -> device.wrap(DataType.FLOAT16, direct.asReadOnlyBuffer()));
    assertThrows(
        IllegalArgumentException.class,
        () -> device.wrap(DataType.FLOAT16, ByteBuffer.allocate(10)));
    assertThrows(NullPointerException.class, () -> device.wrap(null, direct));
    assertThrows(NullPointerException.class, () -> device.wrap(DataType.INT32, null));
  }

  @Test
  void viewsEndAtSegments() {
    HostDevice device = new HostDevice(64);
    AbstractDeviceBuffer buffer = device.allocate(DataType.FLOAT32, 40);
    assertNotNull(buffer.nativeView(0, 16));
    assertNotNull(buffer.nativeView(16, 16));
    assertNull(buffer.nativeView(15, 2));
    assertNull(buffer.slice(10, 20).nativeView(5, 2));
  }

  @Test
  void saysWhatWasAskedWhenMemoryRunsOut() {
    HostDevice device = new HostDevice();
    RuntimeException e =
        assertThrows(
            RuntimeException.class, () -> device.allocate(DataType.FLOAT64, 1L << 36).close());
    assertTrue(e.getMessage().contains("count=" + (1L << 36)), e.getMessage());
  }
}

package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;

import java.util.concurrent.atomic.AtomicBoolean;
import jcuda.driver.CUcontext;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.junit.jupiter.api.Test;

/** Tests closing memory that other ranks have mapped. */
class DeferredFreesTest {
  private static final long ADDRESS = 0x7000;
  private static final long OTHER = 0x8000;

  private final CudaApi api = mock(CudaApi.class);
  private final CUcontext context = FakeGpu.newContext();
  private final AtomicBoolean unmapped = new AtomicBoolean();

  @Test
  void isFreedOnceWhenItIsUnmapped() {
    DeferredFrees.add(api, context, ADDRESS, unmapped::get);
    DeferredFrees.free(api, context);
    verify(api, never()).free(anyLong());
    unmapped.set(true);
    verify(api, never()).free(anyLong());
    DeferredFrees.free(api, context);
    DeferredFrees.free(api, context);
    verify(api, times(1)).free(ADDRESS);
  }

  @Test
  void isFreedOnItsOwnGpuAlone() {
    unmapped.set(true);
    DeferredFrees.add(api, context, ADDRESS, unmapped::get);
    CudaApi another = mock(CudaApi.class);
    DeferredFrees.free(api, FakeGpu.newContext());
    DeferredFrees.free(another, context);
    verify(api, never()).free(anyLong());
    verify(another, never()).free(anyLong());
    DeferredFrees.free(api, context);
    verify(api, times(1)).free(ADDRESS);
  }

  @Test
  void aFailureIsNotTriedAgainAndHoldsNothingElseUp() {
    doThrow(new DeviceException("cuMemFree failed: X (1)", 1)).when(api).free(ADDRESS);
    unmapped.set(true);
    DeferredFrees.add(api, context, ADDRESS, unmapped::get);
    DeferredFrees.add(api, context, OTHER, unmapped::get);
    assertDoesNotThrow(() -> DeferredFrees.free(api, context));
    DeferredFrees.free(api, context);
    verify(api, times(1)).free(ADDRESS);
    verify(api, times(1)).free(OTHER);
  }

  @Test
  void aMappedBufferIsFreedWhenAllHaveUnmappedIt() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      AtomicBoolean again = new AtomicBoolean();
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), unmapped::get);
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), again::get);
      buffer.close();
      unmapped.set(true);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(1)).free(anyLong()); // the small one
      again.set(true);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(3)).free(anyLong());
    }
  }

  @Test
  void aBufferThatIsUnmappedIsFreedAtOnce() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), unmapped::get);
      unmapped.set(true);
      long address = buffer.address();
      buffer.close();
      verify(gpu.api, times(1)).free(address);
    }
  }

  @Test
  void aBufferThatWasNeverClosedOutlivesItsDeviceWhileItIsMapped() {
    FakeGpu gpu = new FakeGpu();
    long address;
    try (CudaDevice device = gpu.open(0)) {
      address = device.allocate(DataType.FLOAT32, 10).address();
      DriverAccess.gpu(device).memory().keepUntil(address, unmapped::get);
    }
    verify(gpu.api, never()).free(anyLong());
    unmapped.set(true);
    gpu.open(0).close();
    verify(gpu.api, times(1)).free(address);
  }

  @Test
  void manyMappingsOfOneBufferAreForgottenOneByOne() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      long address = buffer.address();
      AtomicBoolean before = new AtomicBoolean();
      for (int i = 0; i < 100_000; i++) {
        AtomicBoolean mapping = new AtomicBoolean();
        DriverAccess.gpu(device).memory().keepUntil(address, mapping::get);
        before.set(true);
        before = mapping;
      }
      buffer.close();
      verify(gpu.api, never()).free(address);
      before.set(true);
      DeferredFrees.free(gpu.api, DriverAccess.gpu(device).context());
      verify(gpu.api, times(1)).free(address);
    }
  }

  @Test
  void memoryThatIsNotTheDevicesIsNotFreed() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      DriverAccess.gpu(device).memory().keepUntil(ADDRESS, unmapped::get);
      unmapped.set(true);
    }
    verify(gpu.api, never()).free(anyLong());
  }

  @Test
  void memoryThatCannotBeClearedIsFreed() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      doThrow(new DeviceException("cuMemsetD8Async failed: X (700)", 700))
          .when(gpu.api)
          .fillZero(anyLong(), anyLong(), any());
      try {
        DriverAccess.stream(device.stream()).allocateZeroed(100);
      } catch (DeviceException e) {
        unmapped.set(true);
      }
      assertTrue(unmapped.get());
      assertEquals(0, gpu.allocatedBytes());
    }
  }
}

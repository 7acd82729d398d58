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
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.FakeGpu;
import org.junit.jupiter.api.Test;

/** Memory that is closed here while others have it mapped. */
class DeferredFreesTest {
  private static final long ADDRESS = 0x7000;
  private static final long OTHER = 0x8000;

  private final CudaApi api = mock(CudaApi.class);
  private final CUcontext context = FakeGpu.newContext();
  private final AtomicBoolean back = new AtomicBoolean();

  @Test
  void isFreedOnceWhenItIsBack() {
    DeferredFrees.add(api, context, ADDRESS, back::get);
    DeferredFrees.free(api, context);
    verify(api, never()).free(anyLong());
    back.set(true);
    verify(api, never()).free(anyLong());
    DeferredFrees.free(api, context);
    DeferredFrees.free(api, context);
    verify(api, times(1)).free(ADDRESS);
  }

  @Test
  void isFreedOnItsOwnGpuAlone() {
    back.set(true);
    DeferredFrees.add(api, context, ADDRESS, back::get);
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
    doThrow(new CudaException("cuMemFree failed: X (1)", 1)).when(api).free(ADDRESS);
    back.set(true);
    DeferredFrees.add(api, context, ADDRESS, back::get);
    DeferredFrees.add(api, context, OTHER, back::get);
    assertDoesNotThrow(() -> DeferredFrees.free(api, context));
    DeferredFrees.free(api, context);
    verify(api, times(1)).free(ADDRESS);
    verify(api, times(1)).free(OTHER);
  }

  @Test
  void aLentBufferIsFreedWhenAllLoansAreBack() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      AtomicBoolean again = new AtomicBoolean();
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), back::get);
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), again::get);
      buffer.close();
      back.set(true);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(1)).free(anyLong()); // the small one
      again.set(true);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(3)).free(anyLong());
    }
  }

  @Test
  void aBufferThatIsBackIsFreedAtOnce() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      DriverAccess.gpu(device).memory().keepUntil(buffer.address(), back::get);
      back.set(true);
      long address = buffer.address();
      buffer.close();
      verify(gpu.api, times(1)).free(address);
    }
  }

  @Test
  void aBufferThatWasNeverClosedOutlivesItsDeviceWhileItIsLent() {
    FakeGpu gpu = new FakeGpu();
    long address;
    try (CudaDevice device = gpu.open(0)) {
      address = device.allocate(DataType.FLOAT32, 10).address();
      DriverAccess.gpu(device).memory().keepUntil(address, back::get);
    }
    verify(gpu.api, never()).free(anyLong());
    back.set(true);
    gpu.open(0).close();
    verify(gpu.api, times(1)).free(address);
  }

  @Test
  void manyLoansOfOneBufferAreForgottenOneByOne() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
      long address = buffer.address();
      AtomicBoolean before = new AtomicBoolean();
      for (int i = 0; i < 100_000; i++) {
        AtomicBoolean loan = new AtomicBoolean();
        DriverAccess.gpu(device).memory().keepUntil(address, loan::get);
        before.set(true);
        before = loan;
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
      DriverAccess.gpu(device).memory().keepUntil(ADDRESS, back::get);
      back.set(true);
    }
    verify(gpu.api, never()).free(anyLong());
  }

  @Test
  void memoryThatCannotBeClearedIsFreed() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      doThrow(new CudaException("cuMemsetD8Async failed: X (700)", 700))
          .when(gpu.api)
          .fillZero(anyLong(), anyLong(), any());
      try {
        DriverAccess.stream(device.stream()).allocateZeroed(100);
      } catch (CudaException e) {
        back.set(true);
      }
      assertTrue(back.get());
      assertEquals(0, gpu.allocatedBytes());
    }
  }
}

package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests closing memory that cannot be freed yet. */
class DeferredFreesTest {
  private static final long ADDRESS = 0x7000;
  private static final long OTHER = 0x8000;

  private final CudaApi api = mock(CudaApi.class);
  private final CUcontext context = FakeGpu.newContext();
  private final AtomicBoolean unmapped = new AtomicBoolean();

  @Test
  void isFreedOnceWhenItIsUnmapped() {
    DeferredFrees.of(api, context).add(ADDRESS, unmapped::get);
    DeferredFrees.of(api, context).free();
    verify(api, never()).free(anyLong());
    unmapped.set(true);
    verify(api, never()).free(anyLong());
    DeferredFrees.of(api, context).free();
    DeferredFrees.of(api, context).free();
    verify(api, times(1)).free(ADDRESS);
  }

  @Test
  void isFreedOnItsOwnGpuAlone() {
    unmapped.set(true);
    DeferredFrees.of(api, context).add(ADDRESS, unmapped::get);
    CudaApi another = mock(CudaApi.class);
    DeferredFrees.of(api, FakeGpu.newContext()).free();
    DeferredFrees.of(another, context).free();
    verify(api, never()).free(anyLong());
    verify(another, never()).free(anyLong());
    DeferredFrees.of(api, context).free();
    verify(api, times(1)).free(ADDRESS);
  }

  @Test
  void aFailureIsNotTriedAgainAndHoldsNothingElseUp() {
    doThrow(new DeviceException("cuMemFree failed: X (1)", 1)).when(api).free(ADDRESS);
    unmapped.set(true);
    DeferredFrees.of(api, context).add(ADDRESS, unmapped::get);
    DeferredFrees.of(api, context).add(OTHER, unmapped::get);
    assertDoesNotThrow(() -> DeferredFrees.of(api, context).free());
    DeferredFrees.of(api, context).free();
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
      DeferredFrees.of(gpu.api, DriverAccess.gpu(device).context()).free();
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

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void memoryThatCannotBeClearedIsNotFreedWhileOneOfSeveralSyncsRunsKernels(boolean ofBuffer) {
    FakeGpu gpu = new FakeGpu();
    AtomicBoolean idle = new AtomicBoolean();
    BooleanSupplier busy = idle::get;
    try (CudaDevice device = gpu.open(0)) {
      KernelGate gate = DriverAccess.gpu(device).gate();
      gate.add(busy);
      gate.add(busy);
      doThrow(new DeviceException("cuMemsetD8Async failed: X (700)", 700))
          .when(gpu.api)
          .fillZero(anyLong(), anyLong(), any());
      GpuStream stream = DriverAccess.stream(device.stream());
      assertThrows(
          DeviceException.class,
          () -> {
            if (ofBuffer) {
              DriverAccess.gpu(device).memory().allocateZeroed(100, stream.handle());
            } else {
              stream.allocateZeroed(100);
            }
          });
      verify(gpu.api, never()).free(anyLong());
      idle.set(true);
      DriverAccess.gpu(device).memory().frees().free();
      verify(gpu.api, times(1)).free(anyLong());
      assertEquals(0, gpu.allocatedBytes());
      gate.remove(busy);
      gate.remove(busy);
    }
  }

  @Test
  void nothingIsFreedWhileOneOfSeveralSyncsRunsKernels() {
    FakeGpu gpu = new FakeGpu();
    AtomicBoolean idle = new AtomicBoolean();
    BooleanSupplier busy = idle::get;
    BooleanSupplier other = () -> true;
    try (CudaDevice device = gpu.open(0)) {
      KernelGate gate = DriverAccess.gpu(device).gate();
      gate.add(busy);
      device.allocate(DataType.FLOAT32, 1).close(); // one sync runs its kernels in order
      verify(gpu.api, times(1)).free(anyLong());
      gate.add(other);
      device.allocate(DataType.FLOAT32, 1).close();
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(1)).free(anyLong());
      idle.set(true);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(4)).free(anyLong());
      idle.set(false);
      device.allocate(DataType.FLOAT32, 1).close();
      gate.remove(other);
      DriverAccess.gpu(device).memory().frees().free();
      verify(gpu.api, times(5)).free(anyLong());
      gate.remove(busy);
    }
  }

  @Test
  void aFullGpuWaitsForKernelsAndFreesWhatWasClosed() {
    FakeGpu gpu = new FakeGpu();
    AtomicBoolean full = new AtomicBoolean();
    BooleanSupplier busy = full::get;
    try (CudaDevice device = gpu.open(0)) {
      KernelGate gate = DriverAccess.gpu(device).gate();
      gate.add(busy);
      gate.add(busy);
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, never()).free(anyLong());
      doAnswer(
              call -> {
                full.set(true); // and the kernels end
                throw new DeviceException("cuMemAlloc failed: X (2)", CudaApi.OUT_OF_MEMORY);
              })
          .doReturn(ADDRESS)
          .when(gpu.api)
          .allocate(anyLong());
      CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1);
      verify(gpu.api, times(1)).free(anyLong());
      assertEquals(ADDRESS, buffer.address());
      gate.remove(busy);
      gate.remove(busy);
    }
  }
}

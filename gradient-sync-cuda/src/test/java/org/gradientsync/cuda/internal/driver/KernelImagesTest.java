package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import jcuda.driver.CUmodule;
import org.gradientsync.DeviceException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests the kernels that the build has compiled. */
class KernelImagesTest {
  private final CudaApi api = mock(CudaApi.class);

  @ParameterizedTest
  @CsvSource({
    "75, .sm_75.cubin",
    "80, .sm_80.cubin",
    "89, .sm_80.cubin",
    "90, .sm_90.cubin",
    "100, .compute_90.ptx",
    "121, .compute_90.ptx"
  })
  void eachGpuGetsWhatItRuns(int capability, String suffix) {
    assertEquals(suffix, KernelImages.suffix(capability));
  }

  @Test
  void aGpuThatIsTooOldIsNamed() {
    DeviceException e = assertThrows(DeviceException.class, () -> KernelImages.suffix(70));
    assertTrue(
        e.getMessage().endsWith("computeCapability=7.0; the oldest that can be used is 7.5"));
  }

  @Test
  void aDriverThatIsTooOldForANewGpuIsToldFromOtherFailures() {
    CUmodule loaded = new CUmodule();
    when(api.capability(anyInt())).thenReturn(120);
    when(api.loadImage(eq("reduce.compute_90.ptx"), any()))
        .thenThrow(new DeviceException("cuModuleLoadDataEx failed: X (222), log=", 222))
        .thenThrow(new DeviceException("cuModuleLoadDataEx failed: X (2), log=", 2))
        .thenReturn(loaded);
    DeviceException old =
        assertThrows(DeviceException.class, () -> KernelImages.load(api, 0, "reduce"));
    assertTrue(old.getMessage().startsWith("the driver is too old for this GPU: cuM"), "" + old);
    assertTrue(old.getMessage().endsWith("or build the jar with NVRTC 12.4"), "" + old);
    DeviceException other =
        assertThrows(DeviceException.class, () -> KernelImages.load(api, 0, "reduce"));
    assertEquals("cuModuleLoadDataEx failed: X (2), log=", other.getMessage());
    assertEquals(loaded, KernelImages.load(api, 0, "reduce"));
  }
}

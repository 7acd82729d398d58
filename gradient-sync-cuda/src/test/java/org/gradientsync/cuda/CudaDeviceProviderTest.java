package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.DeviceRequest;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;

/** Choosing a GPU, and what is said where there is none: nothing here needs one. */
class CudaDeviceProviderTest {
  private final CudaApi api = mock(CudaApi.class);

  @Test
  void noGpuIsOneClearLine() {
    when(api.deviceCount())
        .thenThrow(new CudaException("cuDeviceGetCount failed", CudaApi.NO_DEVICE));
    assertTrue(unusable().contains("there is no NVIDIA GPU"));
  }

  @Test
  void hiddenGpusAreNoGpus() {
    when(api.deviceCount()).thenReturn(0);
    assertTrue(unusable().contains("CUDA_VISIBLE_DEVICES"));
  }

  @Test
  void aDriverThatIsTooOldIsNamed() {
    when(api.deviceCount()).thenReturn(1);
    when(api.driverVersion()).thenReturn(11040);
    assertTrue(unusable().contains("too old: cudaVersion=11.4, needed=12.0"), unusable());
    when(api.driverVersion()).thenReturn(13000);
    CudaLibrary.requireUsable(api);
  }

  private String unusable() {
    return assertThrows(UnavailableException.class, () -> CudaLibrary.requireUsable(api))
        .getMessage();
  }

  @Test
  void localRanksTakeGpusInTurn() {
    assertEquals(new DeviceMapping(0, false), DeviceMapping.of(request(0, 4, null), 4));
    assertEquals(new DeviceMapping(3, false), DeviceMapping.of(request(3, 4, null), 4));
    assertEquals(new DeviceMapping(1, true), DeviceMapping.of(request(3, 4, null), 2));
    assertEquals(new DeviceMapping(2, false), DeviceMapping.of(request(0, 4, "2"), 4));
    for (String wrong : new String[] {"4", "-1", "first"}) {
      String message =
          assertThrows(UnavailableException.class, () -> DeviceMapping.of(request(0, 1, wrong), 4))
              .getMessage();
      assertTrue(message.contains("gradientsync.cuda.device=" + wrong), message);
    }
  }

  private static DeviceRequest request(int localRank, int localSize, String asked) {
    Settings settings = new Settings(asked == null ? Map.of() : Map.of("cuda.device", asked));
    return new DeviceRequest(localRank, localRank, localSize, settings);
  }

  @Test
  void outOfMemoryNamesWhatWasAskedAndWhatIsFree() {
    CudaDevice device = new CudaDevice(api, 0);
    when(api.allocate(anyLong()))
        .thenThrow(new CudaException("cuMemAlloc failed, bytes=40", CudaApi.OUT_OF_MEMORY));
    when(api.memoryInfo()).thenReturn(new long[] {7, 100});
    CudaException e =
        assertThrows(CudaException.class, () -> device.allocate(DataType.FLOAT32, 10));
    assertTrue(e.getMessage().contains("bytes=40, free=7, total=100"), e.getMessage());
  }

  @Test
  void askedForByNameWithoutAGpuItSaysWhyNot() {
    boolean gpu = new CudaDeviceProvider().availability(request(0, 1, null)).usable();
    if (gpu) {
      return; // this machine has one: the tests on GPUs say more
    }
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () -> GradientSync.builder().device("cuda").create().close());
    assertTrue(e.getMessage().contains("device cuda is not available"), e.getMessage());
    assertTrue(e.getMessage().contains("NVIDIA"), e.getMessage());
    try (GradientSync sync = GradientSync.create()) {
      assertEquals("host", sync.device().kind());
    }
    assertThrows(
        UnavailableException.class,
        () -> GradientSync.builder().reducer("host-staged").create().close());
  }

  @Test
  void thePtxBelongsToItsSource() throws Exception {
    String source = ReduceKernel.resource("reduce.cu");
    String ptx = ReduceKernel.resource("reduce.ptx");
    byte[] hash =
        MessageDigest.getInstance("SHA-256").digest(source.getBytes(StandardCharsets.UTF_8));
    assertTrue(ptx.contains("// " + HexFormat.of().formatHex(hash)), "run script/compile-kernels");
    assertTrue(ptx.contains(".version 7.8"));
    assertFalse(ptx.contains("fma.rn"), "a fused multiply-add rounds once too little");
  }
}

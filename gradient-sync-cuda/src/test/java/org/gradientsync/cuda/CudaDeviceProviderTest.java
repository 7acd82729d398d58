package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.spi.DeviceRequest;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Tests how a GPU is chosen, and the errors if there is none. Needs no GPU. */
class CudaDeviceProviderTest {
  private final CudaApi api = mock(CudaApi.class);

  @Test
  void noGpuIsOneClearLine() {
    when(api.deviceCount())
        .thenThrow(new DeviceException("cuDeviceGetCount failed", CudaApi.NO_DEVICE));
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
        .thenThrow(new DeviceException("cuMemAlloc failed, bytes=40", CudaApi.OUT_OF_MEMORY));
    when(api.memoryInfo()).thenReturn(new long[] {7, 100});
    DeviceException e =
        assertThrows(DeviceException.class, () -> device.allocate(DataType.FLOAT32, 10));
    assertTrue(e.getMessage().contains("bytes=40, free=7, total=100"), e.getMessage());
  }

  @Test
  void whatBelongsToAnotherDeviceIsRefused() {
    CudaDevice device = new CudaDevice(api, 0);
    CudaDevice other = new CudaDevice(api, 1);
    String stream =
        assertThrows(
                IllegalArgumentException.class,
                () -> device.allocate(DataType.FLOAT32, 1, other.stream()))
            .getMessage();
    assertTrue(stream.contains("stream belongs to another device"), stream);
    when(api.deviceOf(4096)).thenReturn(1);
    String address =
        assertThrows(
                IllegalArgumentException.class,
                () -> device.wrap(DataType.FLOAT32, 4096, 1, device.stream()))
            .getMessage();
    assertTrue(address.contains("address=0x1000, device=1, expected=0"), address);
    when(api.deviceOf(4096)).thenReturn(-1);
    assertTrue(
        assertThrows(
                IllegalArgumentException.class,
                () -> device.wrap(DataType.FLOAT32, 4096, 1, device.stream()))
            .getMessage()
            .contains("device=none"));
    CudaEvent event = device.createEvent(false);
    assertThrows(IllegalArgumentException.class, () -> event.record(other.stream()));
    assertThrows(IllegalStateException.class, () -> event.millisecondsTo(event));
  }

  @Test
  void aClosedDeviceGivesItsMemoryBackAndRefusesWork() {
    when(api.allocate(anyLong())).thenReturn(4096L, 8192L);
    CudaDevice device = new CudaDevice(api, 0);
    CudaBuffer closed = device.allocate(DataType.FLOAT32, 1);
    CudaBuffer open = device.allocate(DataType.FLOAT32, 1);
    closed.close();
    closed.close();
    verify(api, times(1)).free(4096);
    device.close();
    device.close();
    verify(api, times(1)).free(8192);
    assertTrue(open.isClosed());
    open.close();
    verify(api, times(1)).free(8192);
    assertThrows(IllegalStateException.class, () -> device.allocate(DataType.FLOAT32, 1));
    assertThrows(IllegalStateException.class, device::createStream);
    assertThrows(IllegalStateException.class, () -> device.createEvent(true));
    assertThrows(IllegalStateException.class, open::address);
  }

  @Test
  void askedForByNameWithoutAGpuItSaysWhyNot() {
    boolean gpu = new CudaDeviceProvider().availability(request(0, 1, null)).usable();
    Assumptions.assumeFalse(gpu, "this machine has a GPU: the tests on GPUs say more");
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
}

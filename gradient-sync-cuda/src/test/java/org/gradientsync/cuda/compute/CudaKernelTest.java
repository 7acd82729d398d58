package org.gradientsync.cuda.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.contains;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.util.Set;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.TestDevices;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.ArgumentCaptor;

/** Tests loading and launching without a GPU: everything that is checked before the driver. */
class CudaKernelTest {
  private static final String PTX =
      """
      .version 7.8
      // .entry commented( .param .u64 x )
      .visible .entry every(
        .param .u64 every_param_0,
        .param .u8 every_param_1,
        .param .u16 every_param_2,
        .param .u32 every_param_3,
        .param .f32 every_param_4,
        .param .u8 every_param_5,
        .param .f64 every_param_6,
        .param .b64 every_param_7
      )
      .maxntid 512, 1, 1
      { ret; }
      .visible .entry none()
      { ret; }
      .entry bare { ret; }
      .entry other( .param .u64 .ptr .global .align 4 p, /* , */ .param .align 8 .b8 s[24] ) { ret; }
      .func (.param .b32 r) helper( .param .b32 a ) { ret; }
      """;
  private static final Grid GRID = Grid.of(2, 3, 4, 5).withSharedBytes(7);

  private final CudaApi api = mock(CudaApi.class);
  private final CUmodule handle = new CUmodule();
  private final CUfunction function = new CUfunction();
  private final CudaDevice device;
  private final CudaModule module;

  CudaKernelTest() {
    when(api.allocate(anyLong())).thenReturn(0x1_2345_6780L);
    device = TestDevices.open(api, 0);
    when(api.loadModule(PTX)).thenReturn(handle);
    when(api.function(eq(handle), any())).thenReturn(function);
    when(api.arguments(any(), any())).thenReturn(new Pointer());
    module = CudaModule.load(device, PTX);
  }

  private static Object[] right(CudaBuffer buffer) {
    return new Object[] {buffer, (byte) 1, (short) 2, 3, 4f, (byte) 5, 6.0, 7L};
  }

  @Test
  void argumentsLieWhereTheKernelReadsThem() {
    CudaKernel kernel = module.kernel("every");
    ArgumentCaptor<ByteBuffer> memory = ArgumentCaptor.captor();
    ArgumentCaptor<int[]> offsets = ArgumentCaptor.captor();
    verify(api).arguments(memory.capture(), offsets.capture());
    assertArrayEquals(new int[] {0, 8, 10, 12, 16, 20, 24, 32}, offsets.getValue());
    try (CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10)) {
      kernel.launch(device.stream(), GRID, right(buffer));
      ByteBuffer written = memory.getValue();
      assertEquals(buffer.address(), written.getLong(0));
      assertEquals(1, written.get(8));
      assertEquals(2, written.getShort(10));
      assertEquals(3, written.getInt(12));
      assertEquals(4f, written.getFloat(16));
      assertEquals(5, written.get(20));
      assertEquals(6.0, written.getDouble(24));
      assertEquals(7L, written.getLong(32));
      try (CudaBuffer part = (CudaBuffer) buffer.slice(3, 2)) {
        kernel.launch(device.stream(), GRID, right(part));
        assertEquals(buffer.address() + 12, written.getLong(0));
      }
    }
    ArgumentCaptor<int[]> blocks = ArgumentCaptor.captor();
    ArgumentCaptor<int[]> threads = ArgumentCaptor.captor();
    verify(api, times(2))
        .launch(eq(function), blocks.capture(), threads.capture(), eq(7), any(), any());
    assertArrayEquals(new int[] {2, 3, 1}, blocks.getValue());
    assertArrayEquals(new int[] {4, 5, 1}, threads.getValue());
  }

  @Test
  void aPreparedLaunchKeepsItsArguments() {
    CudaKernel kernel = module.kernel("every");
    try (CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
        CudaBuffer part = (CudaBuffer) buffer.slice(3, 2)) {
      PreparedLaunch first = kernel.prepare(GRID, right(buffer));
      PreparedLaunch second = kernel.prepare(GRID, right(part));
      ArgumentCaptor<ByteBuffer> memories = ArgumentCaptor.captor();
      // one for the kernel, and one for each launch
      verify(api, times(3)).arguments(memories.capture(), any());
      ByteBuffer memory = memories.getAllValues().get(1);
      assertEquals(buffer.address(), memory.getLong(0));
      assertEquals(1, memory.get(8));
      assertEquals(2, memory.getShort(10));
      assertEquals(3, memory.getInt(12));
      assertEquals(4f, memory.getFloat(16));
      assertEquals(5, memory.get(20));
      assertEquals(6.0, memory.getDouble(24));
      assertEquals(7L, memory.getLong(32));
      first.launch(device.stream());
      first.set(0, part).set(3, 33).set(4, 44f).set(6, 66.0).set(7, 77L).launch(device.stream());
      assertEquals(part.address(), memory.getLong(0));
      assertEquals(33, memory.getInt(12));
      assertEquals(44f, memory.getFloat(16));
      assertEquals(66.0, memory.getDouble(24));
      assertEquals(77L, memory.getLong(32));
      assertEquals(3, memories.getAllValues().get(2).getInt(12)); // the second launch has its own
      second.launch(device.stream());
    }
    ArgumentCaptor<int[]> blocks = ArgumentCaptor.captor();
    ArgumentCaptor<int[]> threads = ArgumentCaptor.captor();
    verify(api, times(3))
        .launch(eq(function), blocks.capture(), threads.capture(), eq(7), any(), any());
    assertArrayEquals(new int[] {2, 3, 1}, blocks.getValue());
    assertArrayEquals(new int[] {4, 5, 1}, threads.getValue());
  }

  @Test
  void aPreparedLaunchRefusesWhatALaunchRefuses() {
    CudaKernel kernel = module.kernel("every");
    CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10);
    Object[] wrong = right(buffer);
    wrong[3] = 3f;
    assertThrows(IllegalArgumentException.class, () -> kernel.prepare(GRID, wrong));
    assertThrows(IllegalArgumentException.class, () -> kernel.prepare(GRID, buffer));
    PreparedLaunch launch = kernel.prepare(GRID, right(buffer));
    IllegalArgumentException kind =
        assertThrows(IllegalArgumentException.class, () -> launch.set(3, 1L));
    assertTrue(
        kind.getMessage().endsWith("index=3, class=java.lang.Long, expected=4 bytes integer"));
    assertThrows(IllegalArgumentException.class, () -> launch.set(0, 1));
    assertThrows(IllegalArgumentException.class, () -> launch.set(3, 1f));
    assertThrows(IllegalArgumentException.class, () -> launch.set(4, 1.0));
    assertThrows(IllegalArgumentException.class, () -> launch.set(3, buffer));
    assertThrows(IndexOutOfBoundsException.class, () -> launch.set(8, 1));
    assertThrows(IndexOutOfBoundsException.class, () -> launch.set(-1, 1));
    CudaDevice other = TestDevices.open(api, 1);
    CudaBuffer foreign = other.allocate(DataType.FLOAT32, 1);
    assertThrows(IllegalArgumentException.class, () -> launch.set(0, foreign));
    assertThrows(IllegalArgumentException.class, () -> launch.launch(other.stream()));
    verify(api, never()).launch(any(), any(), any(), anyInt(), any(), any());
  }

  @Test
  void aPreparedLaunchEndsWithItsBuffersAndItsModule() {
    CudaBuffer first = device.allocate(DataType.FLOAT32, 10);
    CudaBuffer second = device.allocate(DataType.FLOAT32, 10);
    PreparedLaunch launch = module.kernel("every").prepare(GRID, right(first));
    first.close();
    IllegalStateException e =
        assertThrows(IllegalStateException.class, () -> launch.launch(device.stream()));
    assertTrue(e.getMessage().contains("buffer is closed"), e.getMessage());
    launch.set(0, second).launch(device.stream()); // the first buffer is replaced
    launch.set(7, 7L).launch(device.stream());
    assertThrows(IllegalStateException.class, () -> launch.set(0, first));
    module.close();
    assertThrows(IllegalStateException.class, () -> launch.launch(device.stream()));
    verify(api, times(2)).launch(any(), any(), any(), anyInt(), any(), any());
  }

  @Test
  void aKernelMayTakeNothing() {
    module.kernel("none").launch(device.stream(), GRID);
    module.kernel("bare").launch(device.stream(), GRID);
    verify(api, times(2)).launch(eq(function), any(), any(), eq(7), any(), eq(null));
  }

  @Test
  void theKernelsOfAModuleAreListed() {
    assertEquals(Set.of("bare", "every", "none", "other"), module.kernelNames());
    DeviceException e = assertThrows(DeviceException.class, () -> module.kernel("evry"));
    assertTrue(
        e.getMessage().contains("(500), name=evry, kernels=[bare, every, none, other]"),
        e.getMessage());
    assertEquals(500, e.code());
    assertEquals("other[8 bytes integer, 24 bytes]", module.kernel("other").toString());
  }

  @Test
  void anArgumentOfTheWrongKindIsNamed() {
    CudaKernel kernel = module.kernel("every");
    try (CudaBuffer buffer = device.allocate(DataType.FLOAT32, 10)) {
      Object[] wrong = {"text", 1, 1, 1f, 4.0, 5, 6f, null};
      for (int i = 0; i < wrong.length; i++) {
        Object[] arguments = right(buffer);
        arguments[i] = wrong[i];
        String message = refused(kernel, arguments);
        String kind = wrong[i] == null ? "null" : wrong[i].getClass().getName();
        assertTrue(message.contains("a kernel argument of the wrong kind: kernel=every"), message);
        assertTrue(message.contains("index=" + i + ", class=" + kind + ", expected="), message);
      }
      Object[] floatForInt = right(buffer);
      floatForInt[3] = 3f;
      assertTrue(refused(kernel, floatForInt).contains("expected=4 bytes integer"));
      Object[] bufferForInt = right(buffer);
      bufferForInt[3] = buffer;
      assertTrue(refused(kernel, bufferForInt).contains("class=" + CudaBuffer.class.getName()));
      assertTrue(refused(kernel, buffer).contains("given=1, expected=8"));
      assertTrue(refused(module.kernel("none"), 1).contains("given=1, expected=0"));
      assertTrue(refused(module.kernel("other"), buffer, 1L).contains("index=1"));
    }
    verify(api, never()).launch(any(), any(), any(), anyInt(), any(), any());
  }

  private String refused(CudaKernel kernel, Object... arguments) {
    return assertThrows(
            IllegalArgumentException.class, () -> kernel.launch(device.stream(), GRID, arguments))
        .getMessage();
  }

  @Test
  void whatBelongsToAnotherGpuIsRefused() {
    when(api.deviceName(1)).thenReturn("the other");
    CudaKernel kernel = module.kernel("every");
    CudaDevice other = TestDevices.open(api, 1);
    try (CudaBuffer foreign = other.allocate(DataType.FLOAT32, 1)) {
      String message = refused(kernel, right(foreign));
      assertTrue(message.contains("another device: kernel=every, index=0, buffer=the other"));
    }
    try (CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1)) {
      IllegalArgumentException e =
          assertThrows(
              IllegalArgumentException.class,
              () -> kernel.launch(other.stream(), GRID, right(buffer)));
      assertTrue(e.getMessage().contains("stream belongs to another device"), e.getMessage());
    }
  }

  @Test
  void whatIsClosedIsRefused() {
    CudaKernel kernel = module.kernel("every");
    CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1);
    buffer.close();
    IllegalStateException e =
        assertThrows(
            IllegalStateException.class, () -> kernel.launch(device.stream(), GRID, right(buffer)));
    assertTrue(e.getMessage().contains("buffer is closed"), e.getMessage());
    CudaKernel none = module.kernel("none");
    CudaStream stream = device.createStream();
    stream.close();
    assertThrows(IllegalStateException.class, () -> none.launch(stream, GRID));
    module.close();
    module.close();
    verify(api, times(1)).unloadModule(handle);
    assertThrows(IllegalStateException.class, () -> none.launch(device.stream(), GRID));
    assertThrows(IllegalStateException.class, () -> module.kernel("none"));
  }

  @Test
  void modulesAreUnloadedAfterTheirDeviceIsClosedToo() {
    device.close();
    module.close();
    verify(api).unloadModule(handle); // the device has not released its context yet
    assertThrows(IllegalStateException.class, () -> CudaModule.load(device, PTX));
    assertThrows(IllegalStateException.class, () -> CudaModule.compile(device, "source"));
    assertThrows(IllegalStateException.class, () -> CudaBlas.create(device));
  }

  @Test
  void whatTheDriverSaysOfPtxIsPassedOn() {
    when(api.loadModule(contains("nonsense")))
        .thenThrow(new DeviceException("cuModuleLoadDataEx failed: X (218), log=line 1", 218));
    DeviceException e =
        assertThrows(DeviceException.class, () -> CudaModule.load(device, "nonsense"));
    assertTrue(e.getMessage().contains("log=line 1"), e.getMessage());
    assertThrows(NullPointerException.class, () -> CudaModule.load(device, null));
    assertThrows(NullPointerException.class, () -> CudaModule.compile(device, null));
  }

  @Test
  void gridsCoverTheirElements() {
    assertEquals(Grid.of(1, 256), Grid.covering(0, 256));
    assertEquals(Grid.of(1, 256), Grid.covering(256, 256));
    assertEquals(Grid.of(2, 256), Grid.covering(257, 256));
    assertEquals(Integer.MAX_VALUE, Grid.covering(Integer.MAX_VALUE * 64L, 64).blocksX());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "0,1,1,1,1,1,0",
        "1,0,1,1,1,1,0",
        "1,1,0,1,1,1,0",
        "1,1,1,0,1,1,0",
        "1,1,1,1,0,1,0",
        "1,1,1,1,1,0,0",
        "1,1,1,1025,1,1,0",
        "1,1,1,1,1,65,0",
        "1,1,1,32,33,1,0",
        "1,1,1,1024,1024,64,0",
        "1,65536,1,1,1,1,0",
        "1,1,65536,1,1,1,0",
        "1,1,1,1,1,1,-1"
      })
  void impossibleGridsAreRefused(String numbers) {
    String[] n = numbers.split(",");
    int[] v = new int[n.length];
    for (int i = 0; i < v.length; i++) {
      v[i] = Integer.parseInt(n[i]);
    }
    IllegalArgumentException e =
        assertThrows(
            IllegalArgumentException.class,
            () -> new Grid(v[0], v[1], v[2], v[3], v[4], v[5], v[6]));
    assertTrue(e.getMessage().startsWith("grid is out of range: "), e.getMessage());
  }

  @Test
  void impossibleCoveringsAreRefused() {
    assertThrows(IllegalArgumentException.class, () -> Grid.covering(-1, 256));
    assertThrows(IllegalArgumentException.class, () -> Grid.covering(1, 0));
    assertThrows(IllegalArgumentException.class, () -> Grid.covering(1, 1025));
    assertThrows(IllegalArgumentException.class, () -> Grid.covering(Long.MAX_VALUE, 1));
  }
}

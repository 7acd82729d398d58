package org.gradientsync.cuda.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyDouble;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.when;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.SimulatedGpu;
import org.gradientsync.cuda.TestDevices;
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mockito.InOrder;

/** Tests what runs before cuBLAS is called, and the errors if it is missing. */
class CudaBlasTest {
  private final CudaApi api = mock(CudaApi.class);
  private final BlasApi blasApi = mock(BlasApi.class);
  private final cublasHandle handle = new cublasHandle();
  private final CUstream streamHandle = new CUstream();
  private final CudaDevice device;
  private final CudaBlas blas;
  private long next = 0x1000_0000L;

  CudaBlasTest() {
    when(api.allocate(anyLong()))
        .thenAnswer(
            call -> {
              next += 1L << 36;
              return next;
            });
    when(api.createStream()).thenReturn(streamHandle);
    when(blasApi.create()).thenReturn(handle);
    device = TestDevices.open(api, 0);
    blas = new CudaBlas(device, blasApi);
  }

  private CudaBuffer floats(long count) {
    return device.allocate(DataType.FLOAT32, count);
  }

  @Test
  void rowsAreColumnsOfTheTransposedMatrix() {
    CudaBuffer a = floats(2 * 3);
    CudaBuffer b = floats(3 * 5);
    CudaBuffer c = floats(2 * 5);
    blas.multiply(device.stream(), a, b, c, 2, 3, 5);
    InOrder order = inOrder(blasApi);
    order.verify(blasApi).useStream(handle, streamHandle);
    order
        .verify(blasApi)
        .multiply(
            handle,
            DataType.FLOAT32,
            false,
            false,
            5,
            2,
            3,
            1,
            b.address(),
            5,
            a.address(),
            3,
            0,
            c.address(),
            5);
  }

  /**
   * Compares with the definition, on a simulated GPU with a textbook gemm on column-major matrices.
   */
  @ParameterizedTest
  @CsvSource({
    "false, false, 1, 0",
    "true, false, 1, 0",
    "false, true, 1, 0",
    "true, true, 1, 0",
    "true, false, -0.5, 1",
    "false, true, 2, 0.25",
    "true, true, 0, 3"
  })
  void productsOfRowsAreWhatTheyAreDefinedAs(
      boolean transposeA, boolean transposeB, double alpha, double beta) {
    int rows = 2;
    int inner = 3;
    int columns = 5;
    float[] a = numbers(rows * inner, 0.5f);
    float[] b = numbers(inner * columns, -2);
    float[] before = numbers(rows * columns, 7);
    float[] expected = new float[before.length];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        double sum = 0;
        for (int k = 0; k < inner; k++) {
          double left = transposeA ? a[k * rows + i] : a[i * inner + k];
          double right = transposeB ? b[j * inner + k] : b[k * columns + j];
          sum += left * right;
        }
        int place = i * columns + j;
        expected[place] = (float) (alpha * sum + beta * before[place]);
      }
    }
    try (SimulatedGpu gpu = new SimulatedGpu();
        CudaBlas simulated = gpu.blas()) {
      CudaStream stream = gpu.device().stream();
      CudaBuffer onA = gpu.device().allocate(DataType.FLOAT32, a.length);
      CudaBuffer onB = gpu.device().allocate(DataType.FLOAT32, b.length);
      CudaBuffer onC = gpu.device().allocate(DataType.FLOAT32, before.length + 2);
      CudaBuffer inside = (CudaBuffer) onC.slice(1, before.length);
      onA.copyFrom(a);
      onB.copyFrom(b);
      inside.copyFrom(before);
      simulated.multiply(
          stream, alpha, onA, transposeA, onB, transposeB, beta, inside, rows, inner, columns);
      float[] result = new float[before.length + 2];
      onC.copyTo(result);
      assertArrayEquals(expected, Arrays.copyOfRange(result, 1, result.length - 1));
      assertEquals(0, result[0]);
      assertEquals(0, result[result.length - 1]);
    }
  }

  @Test
  void aSumOfNothingLeavesBetaTimesWhatWasThere() {
    CudaBuffer empty = floats(0);
    CudaBuffer c = floats(4);
    blas.multiply(device.stream(), 3, empty, true, empty, false, 1, c, 2, 0, 2);
    verify(blasApi, never()).scale(any(), any(), anyInt(), anyDouble(), anyLong());
    blas.multiply(device.stream(), 3, empty, true, empty, false, 0.5, c, 2, 0, 2);
    verify(blasApi).scale(handle, DataType.FLOAT32, 4, 0.5, c.address());
    verify(api, times(1)).fillZero(c.address(), 16, streamHandle); // at the allocation
  }

  @Test
  void theStreamIsToldOnceAndItsWorkspaceBehindIt() {
    CudaBuffer x = floats(4);
    CudaBuffer memory = floats(4096);
    CUstream otherHandle = new CUstream();
    when(api.createStream()).thenReturn(otherHandle);
    CudaStream other = device.createStream();
    List<String> told = new ArrayList<>();
    doAnswer(c -> told.add(c.getArgument(1) == streamHandle ? "own" : "other"))
        .when(blasApi)
        .useStream(any(), any());
    doAnswer(c -> told.add("memory")).when(blasApi).useWorkspace(any(), anyLong(), anyLong());
    blas.scale(device.stream(), 2, x);
    blas.scale(device.stream(), 2, x);
    blas.setWorkspace(device.stream(), memory);
    verify(blasApi, never()).useWorkspace(any(), anyLong(), anyLong());
    blas.scale(device.stream(), 2, x);
    blas.scale(device.stream(), 2, x);
    blas.scale(other, 2, x);
    blas.scale(device.stream(), 2, x);
    assertEquals(List.of("own", "own", "memory", "other", "own", "memory"), told);
    verify(blasApi, times(2)).useWorkspace(handle, memory.address(), 16384);
    memory.close();
    assertThrows(IllegalStateException.class, () -> blas.scale(device.stream(), 2, x));
    blas.scale(other, 2, x);
  }

  @Test
  void workspacesThatCuBlasWouldRefuseAreRefused() {
    CudaBuffer memory = floats(8192);
    CudaBuffer small = floats(4095);
    String message =
        assertThrows(
                IllegalArgumentException.class, () -> blas.setWorkspace(device.stream(), small))
            .getMessage();
    assertTrue(message.contains("bytes=16380, least=16384"), message);
    assertThrows(
        IllegalArgumentException.class,
        () -> blas.setWorkspace(device.stream(), (CudaBuffer) memory.slice(1, 8000)));
    CudaDevice otherDevice = TestDevices.open(api, 1);
    assertThrows(
        IllegalArgumentException.class, () -> blas.setWorkspace(otherDevice.stream(), memory));
    CudaBuffer foreign = otherDevice.allocate(DataType.FLOAT32, 8192);
    assertThrows(IllegalArgumentException.class, () -> blas.setWorkspace(device.stream(), foreign));
    blas.setWorkspace(device.stream(), memory);
    verify(blasApi, never()).useWorkspace(any(), anyLong(), anyLong());
  }

  @Test
  void theMathModeIsFloat32UntilChosen() {
    assertEquals(CudaBlas.MathMode.FLOAT32, blas.mathMode());
    verify(blasApi, never()).useTf32(any(), anyBoolean());
    blas.setMathMode(CudaBlas.MathMode.TF32);
    verify(blasApi).useTf32(handle, true);
    assertEquals(CudaBlas.MathMode.TF32, blas.mathMode());
    blas.setMathMode(CudaBlas.MathMode.FLOAT32);
    verify(blasApi).useTf32(handle, false);
    assertThrows(NullPointerException.class, () -> blas.setMathMode(null));
    blas.close();
    assertThrows(IllegalStateException.class, () -> blas.setMathMode(CudaBlas.MathMode.TF32));
  }

  private static float[] numbers(int count, float first) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = first + i * (i % 2 == 0 ? 1 : -0.75f);
    }
    return numbers;
  }

  @Test
  void emptyMatricesNeedNoCall() {
    CudaBuffer empty = device.allocate(DataType.FLOAT64, 0);
    blas.multiply(device.stream(), empty, empty, empty, 0, 7, 0);
    blas.scale(device.stream(), 2, empty);
    blas.addScaled(device.stream(), 2, empty, empty);
    verify(blasApi).create();
    verify(blasApi).useStream(handle, streamHandle);
    verifyNoMoreInteractions(blasApi);
    CudaBuffer c = device.allocate(DataType.FLOAT64, 4);
    blas.multiply(device.stream(), empty, empty, c, 2, 0, 2); // an empty sum: zeros
    // the other one was the allocation
    verify(api, times(2)).fillZero(c.address(), 32, streamHandle);
    verifyNoMoreInteractions(blasApi);
  }

  @Test
  void countsBeyondAnIntGoInPieces() {
    CudaBuffer x = floats(5L << 29);
    CudaBuffer y = floats(5L << 29);
    blas.scale(device.stream(), 0.5, x);
    int piece = 1 << 30;
    verify(blasApi).scale(handle, DataType.FLOAT32, piece, 0.5, x.address());
    verify(blasApi).scale(handle, DataType.FLOAT32, piece, 0.5, x.address() + 4L * piece);
    verify(blasApi).scale(handle, DataType.FLOAT32, piece / 2, 0.5, x.address() + 8L * piece);
    blas.addScaled(device.stream(), -1, x, y);
    verify(blasApi)
        .addScaled(
            handle,
            DataType.FLOAT32,
            piece / 2,
            -1,
            x.address() + 8L * piece,
            y.address() + 8L * piece);
  }

  @Test
  void whatDoesNotFitIsRefused() {
    CudaBuffer four = floats(4);
    CudaBuffer six = floats(6);
    CudaBuffer doubles = device.allocate(DataType.FLOAT64, 4);
    CudaBuffer integers = device.allocate(DataType.INT32, 4);
    CudaBuffer out = floats(4);
    assertTrue(refused(six, four, out).contains("matrix does not fit: a=cuda FLOAT32[6]"));
    assertTrue(refused(four, six, out).contains("matrix does not fit: b="));
    assertTrue(refused(four, four, six).contains("matrix does not fit: c="));
    assertTrue(refused(doubles, four, out).contains("expected=FLOAT32"));
    assertTrue(refused(integers, four, out).contains("takes FLOAT32 and FLOAT64 buffers: a="));
    assertTrue(refused(four, out, out).contains("buffers overlap: b="));
    CudaBuffer long8 = floats(8);
    assertTrue(
        refused((CudaBuffer) long8.slice(0, 4), four, (CudaBuffer) long8.slice(3, 4))
            .contains("buffers overlap: a="));
    blas.multiply(
        device.stream(),
        (CudaBuffer) long8.slice(0, 4),
        four,
        (CudaBuffer) long8.slice(4, 4),
        2,
        2,
        2);
    assertThrows(
        IllegalArgumentException.class,
        () -> blas.multiply(device.stream(), four, four, out, -2, -2, -2));
    assertThrows(
        IllegalArgumentException.class, () -> blas.addScaled(device.stream(), 1, four, six));
    assertThrows(
        IllegalArgumentException.class, () -> blas.addScaled(device.stream(), 1, four, doubles));
    assertThrows(IllegalArgumentException.class, () -> blas.scale(device.stream(), 1, integers));
    verify(blasApi, never()).scale(any(), any(), anyInt(), anyDouble(), anyLong());
  }

  private String refused(CudaBuffer a, CudaBuffer b, CudaBuffer c) {
    return assertThrows(
            IllegalArgumentException.class, () -> blas.multiply(device.stream(), a, b, c, 2, 2, 2))
        .getMessage();
  }

  @Test
  void whatBelongsToAnotherGpuIsRefused() {
    CudaDevice other = TestDevices.open(api, 1);
    CudaBuffer foreign = other.allocate(DataType.FLOAT32, 4);
    assertThrows(IllegalArgumentException.class, () -> blas.scale(device.stream(), 1, foreign));
    CudaBuffer own = floats(4);
    assertThrows(IllegalArgumentException.class, () -> blas.scale(other.stream(), 1, own));
  }

  @Test
  void whatIsClosedIsRefused() {
    CudaBuffer x = floats(4);
    CudaBuffer closed = floats(4);
    closed.close();
    assertThrows(IllegalStateException.class, () -> blas.scale(device.stream(), 1, closed));
    blas.close();
    blas.close();
    verify(blasApi, times(1)).destroy(handle);
    assertThrows(IllegalStateException.class, () -> blas.scale(device.stream(), 1, x));
  }

  @Test
  void missingLibrariesAreOneClearLine() {
    Availability blasHere = CudaBlas.availability();
    if (!blasHere.usable()) {
      assertTrue(blasHere.reason().startsWith("libcublas.so.12 is missing: "), blasHere::reason);
      assertEquals(1, blasHere.reason().lines().count());
      // the second time the class cannot load again
      assertEquals(blasHere, CudaBlas.availability());
      assertThrows(UnavailableException.class, () -> CudaBlas.create(device));
    }
    Availability compiler = CudaModule.compilerAvailability();
    if (!compiler.usable()) {
      assertTrue(compiler.reason().startsWith("libnvrtc.so.12 is missing: "), compiler::reason);
      assertTrue(compiler.reason().endsWith("load PTX instead"), compiler::reason);
      assertEquals(compiler, CudaModule.compilerAvailability());
      UnavailableException e =
          assertThrows(
              UnavailableException.class,
              () -> CudaModule.compile(device, "__global__ void f() {}"));
      assertEquals(compiler.reason(), e.getMessage());
    }
  }

  @Test
  void theArchitectureIsTheGpusUnlessAskedOtherwise() {
    assertEquals("--gpu-architecture=compute_75", Nvrtc.options(75)[0]);
    assertEquals("--gpu-architecture=compute_90", Nvrtc.options(100)[0]);
    String[] asked = {"-fmad=false", "--gpu-architecture=compute_80"};
    assertEquals(asked, Nvrtc.options(90, asked));
    assertEquals(2, Nvrtc.options(90, "-fmad=false").length);
    assertEquals(1, Nvrtc.options(90, "-arch=compute_80").length);
  }
}

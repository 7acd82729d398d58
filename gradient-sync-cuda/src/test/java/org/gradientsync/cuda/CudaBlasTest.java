package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyDouble;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.when;

import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Test;
import org.mockito.InOrder;

/** What is checked and computed before cuBLAS is called, and what is said where it is missing. */
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
    device = new CudaDevice(api, 0);
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
        .multiply(handle, DataType.FLOAT32, 5, 2, 3, b.address(), a.address(), c.address());
  }

  @Test
  void emptyMatricesNeedNoCall() {
    CudaBuffer empty = device.allocate(DataType.FLOAT64, 0);
    blas.multiply(device.stream(), empty, empty, empty, 0, 7, 0);
    blas.scale(device.stream(), 2, empty);
    blas.addScaled(device.stream(), 2, empty, empty);
    verify(blasApi).create();
    verify(blasApi, times(3)).useStream(handle, streamHandle);
    verifyNoMoreInteractions(blasApi);
    CudaBuffer c = device.allocate(DataType.FLOAT64, 4);
    blas.multiply(device.stream(), empty, empty, c, 2, 0, 2); // a sum of nothing: zeros
    verify(api, times(2)).fillZero(c.address(), 32, streamHandle); // and once when allocated
    verify(blasApi, times(4)).useStream(handle, streamHandle);
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
    CudaDevice other = new CudaDevice(api, 1);
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
      assertEquals(blasHere, CudaBlas.availability()); // asked again: the class cannot load again
      assertThrows(UnavailableException.class, device::blas);
    }
    Availability compiler = CudaModule.compilerAvailability();
    if (!compiler.usable()) {
      assertTrue(compiler.reason().startsWith("libnvrtc.so.12 is missing: "), compiler::reason);
      assertTrue(compiler.reason().endsWith("load PTX instead"), compiler::reason);
      assertEquals(compiler, CudaModule.compilerAvailability());
      UnavailableException e =
          assertThrows(UnavailableException.class, () -> device.compile("__global__ void f() {}"));
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

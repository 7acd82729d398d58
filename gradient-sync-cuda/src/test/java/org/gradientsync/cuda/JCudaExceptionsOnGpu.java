package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import jcuda.driver.JCudaDriver;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.nvrtc.JNvrtc;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.JCublasApi;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests a program that lets JCuda throw exceptions, as JCuda's own samples do. */
@Timeout(60)
class JCudaExceptionsOnGpu {
  private static final long MUCH = 1L << 48;
  private static final long CLOCKS = 500_000_000;

  @BeforeEach
  void letThrow() {
    JCudaDriver.setExceptionsEnabled(true);
  }

  @AfterEach
  void asItWas() {
    JCudaDriver.setExceptionsEnabled(false);
  }

  @Test
  void whatIsNotDoneIsNoError() throws IOException {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        InputStream in = CudaGraphOnGpu.class.getResourceAsStream("compute/user.ptx");
        CudaModule module =
            CudaModule.load(device, new String(in.readAllBytes(), StandardCharsets.UTF_8));
        CudaBuffer buffer = device.allocate(DataType.INT32, 100);
        CudaEvent event = device.createEvent(false)) {
      module.kernel("slow").launch(device.stream(), Grid.of(1, 128), buffer, 100, CLOCKS);
      event.record(device.stream());
      assertFalse(event.isDone());
      assertFalse(
          DriverAccess.gpu(device).api().isDone(DriverAccess.stream(device.stream()).handle()));
      event.await();
      assertTrue(event.isDone());
    }
  }

  @Test
  void anErrorKeepsItsCode() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      DeviceException e =
          assertThrows(DeviceException.class, () -> device.allocate(DataType.FLOAT64, MUCH));
      assertEquals(CudaApi.OUT_OF_MEMORY, e.code());
      assertTrue(e.getMessage().contains("free="), e.getMessage());
      assertThrows(
          IllegalArgumentException.class,
          () -> device.wrap(DataType.INT32, 1 << 20, 8, device.stream()));
    }
  }

  @Test
  void aCompilerSaysWhatIsWrong() {
    Availability compiler = CudaModule.compilerAvailability();
    Assumptions.assumeTrue(compiler.usable(), compiler.reason());
    JNvrtc.setExceptionsEnabled(true);
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      DeviceException e =
          assertThrows(
              DeviceException.class,
              () -> CudaModule.compile(device, "__global__ void f() { x; }"));
      assertTrue(e.getMessage().contains("\"x\" is undefined"), e.getMessage());
    } finally {
      JNvrtc.setExceptionsEnabled(false);
    }
  }

  @Test
  void aProductThatCublasRefusesKeepsItsCode() {
    Assumptions.assumeTrue(CudaBlas.availability().usable(), CudaBlas.availability().reason());
    JCublasApi api = JCublasApi.load();
    JCublas2.setExceptionsEnabled(true);
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      device.makeCurrent();
      cublasHandle handle = api.create();
      DeviceException e =
          assertThrows(
              DeviceException.class,
              () ->
                  api.multiply( // the rows overlap
                      handle, DataType.FLOAT32, false, false, 4, 4, 4, 1, 0, 1, 0, 1, 0, 0, 1));
      api.destroy(handle);
      assertTrue(e.getMessage().startsWith("cublasSgemm failed: CUBLAS_STATUS_"), e.getMessage());
      assertEquals(e.getMessage().replaceAll(".*\\((\\d+)\\).*", "$1"), "" + e.code());
    } finally {
      JCublas2.setExceptionsEnabled(false);
    }
  }

  /** If there is only one GPU, the ranks share it. */
  @Test
  void ranksAverage() {
    for (String reducer : new String[] {"host-staged", "peer"}) {
      LocalRanks.run(
          2,
          b -> b.device("cuda").reducer(reducer).set("dev.peer.sharing", "on"),
          sync -> {
            try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 3)) {
              float own = sync.rank();
              buffer.copyFrom(new float[] {own, 2 * own, 4});
              sync.average(buffer);
              float[] values = new float[3];
              buffer.copyTo(values);
              assertArrayEquals(new float[] {0.5f, 1, 4}, values);
            }
          });
    }
  }
}

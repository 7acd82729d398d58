package org.gradientsync.cuda.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.TestDevices;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Tests user kernels on a real GPU: from PTX, and compiled at run time where NVRTC is installed.
 */
class UserKernelOnGpu {
  private CudaDevice device;

  @BeforeEach
  void open() {
    device = TestDevices.open(CudaLibrary.api(), 0);
  }

  @AfterEach
  void close() {
    device.close();
  }

  private static String resource(String name) throws IOException {
    try (InputStream in = UserKernelOnGpu.class.getResourceAsStream(name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void everyKindOfArgumentArrives() throws IOException {
    try (CudaModule module = CudaModule.load(device, resource("user.ptx"))) {
      assertEquals(Set.of("every", "nothing", "places", "slow"), module.kernelNames());
      runEvery(module);
    }
  }

  @Test
  void sourceIsCompiledHere() throws IOException {
    requireCompiler();
    try (CudaModule module = CudaModule.compile(device, resource("user.cu"), "-fmad=false")) {
      assertEquals(Set.of("every", "nothing", "places", "slow"), module.kernelNames());
      runEvery(module);
    }
  }

  private void runEvery(CudaModule module) {
    int count = 1000;
    CudaKernel every = module.kernel("every");
    try (CudaBuffer out = device.allocate(DataType.FLOAT64, count);
        CudaBuffer in = device.allocate(DataType.FLOAT32, count + 5)) {
      float[] values = new float[count + 5];
      for (int i = 0; i < values.length; i++) {
        values[i] = i / 4f;
      }
      in.copyFrom(values);
      double[] expected = new double[count];
      for (int n = 1; n <= 2; n++) { // the second launch has its own arguments
        byte b = (byte) -n;
        short s = (short) (-300 * n);
        int i = 70_000 * n;
        float f = -0.5f * n;
        byte b2 = (byte) (100 + n);
        double d = 1.25 * n;
        long l = -(1L << 33) * n;
        every.launch(
            device.stream(),
            Grid.covering(count, 128),
            out,
            b,
            s,
            i,
            f,
            b2,
            d,
            l,
            in.slice(n, count),
            (long) count);
        for (int k = 0; k < count; k++) {
          expected[k] =
              b + 2.0 * s + 3.0 * i + 4.0 * f + 5.0 * b2 + 6.0 * d + 7.0 * l + values[k + n];
        }
        double[] result = new double[count];
        out.copyTo(result);
        assertArrayEquals(expected, result);
      }
    }
  }

  @Test
  void gridsHaveThreeDimensionsAndSharedMemory() throws IOException {
    try (CudaModule module = CudaModule.load(device, resource("user.ptx"))) {
      int threads = 4 * 3 * 2;
      int blocks = 2 * 3 * 5;
      try (CudaBuffer out = device.allocate(DataType.INT32, threads * blocks)) {
        Grid grid = new Grid(2, 3, 5, 4, 3, 2, threads * Integer.BYTES);
        module.kernel("places").launch(device.stream(), grid, out);
        int[] result = new int[threads * blocks];
        out.copyTo(result);
        for (int block = 0; block < blocks; block++) {
          for (int thread = 0; thread < threads; thread++) {
            assertEquals(block * threads + threads - 1 - thread, result[block * threads + thread]);
          }
        }
      }
      module.kernel("nothing").launch(device.stream(), Grid.of(1, 1));
      device.stream().await();
    }
  }

  @Test
  void aLaunchIsEnqueuedOnItsStreamAlone() throws IOException {
    long cycles = 400_000_000L; // about a quarter of a second
    try (CudaModule module = CudaModule.load(device, resource("user.ptx"));
        CudaStream busy = device.createStream();
        CudaStream other = device.createStream();
        CudaEvent done = device.createEvent(false);
        CudaBuffer first = device.allocate(DataType.INT32, 100, busy);
        CudaBuffer second = device.allocate(DataType.INT32, 100, other)) {
      CudaKernel slow = module.kernel("slow");
      busy.await();
      other.await();
      slow.launch(busy, Grid.of(1, 128), first, 100, cycles);
      done.record(busy);
      slow.launch(other, Grid.of(1, 128), second, 100, 0L);
      other.await();
      assertTrue(!done.isDone(), "the launch waited, or ran on another stream");
      slow.launch(busy, Grid.of(1, 128), first, 100, 0L); // runs after the slow one
      int[] result = new int[100];
      first.copyTo(result);
      assertTrue(done.isDone());
      for (int value : result) {
        assertEquals(2, value);
      }
    }
  }

  @Test
  void threadsLaunchTheSameKernel() throws Exception {
    int threads = 4;
    int rounds = 500;
    try (CudaModule module = CudaModule.load(device, resource("user.ptx"));
        CudaBuffer counts = device.allocate(DataType.INT32, threads)) {
      CudaKernel slow = module.kernel("slow");
      Thread[] running = new Thread[threads];
      for (int i = 0; i < threads; i++) {
        CudaBuffer own = (CudaBuffer) counts.slice(i, 1);
        running[i] =
            new Thread(
                () -> {
                  for (int round = 0; round < rounds; round++) {
                    slow.launch(device.stream(), Grid.of(1, 1), own, 1, 0L);
                  }
                });
        running[i].start();
      }
      for (Thread thread : running) {
        thread.join();
      }
      int[] result = new int[threads];
      counts.copyTo(result);
      assertArrayEquals(new int[] {rounds, rounds, rounds, rounds}, result);
    }
  }

  @Test
  void wrongPtxAndNamesAreExplained() throws IOException {
    DeviceException e =
        assertThrows(
            DeviceException.class,
            () -> CudaModule.load(device, ".version 7.8\n.target sm_75\nnonsense"));
    assertTrue(e.getMessage().contains("log="), e.getMessage());
    try (CudaModule module = CudaModule.load(device, resource("user.ptx"))) {
      e = assertThrows(DeviceException.class, () -> module.kernel("missing"));
      assertTrue(
          e.getMessage().contains("name=missing, kernels=[every, nothing, places, slow]"),
          e.getMessage());
      CudaKernel places = module.kernel("places");
      try (CudaBuffer out = device.allocate(DataType.INT32, 1)) {
        Grid tooMuchShared = Grid.of(1, 1).withSharedBytes(1 << 20);
        e =
            assertThrows(
                DeviceException.class, () -> places.launch(device.stream(), tooMuchShared, out));
        assertTrue(e.getMessage().startsWith("cuLaunchKernel failed: "), e.getMessage());
        // the kernel still works
        places.launch(device.stream(), Grid.of(1, 1).withSharedBytes(4), out);
        int[] one = {-1};
        out.copyTo(one);
        assertEquals(0, one[0]);
      }
    }
  }

  @Test
  void wrongSourceComesWithTheCompilersLog() {
    requireCompiler();
    DeviceException e =
        assertThrows(
            DeviceException.class,
            () ->
                CudaModule.compile(device, "extern \"C\" __global__ void f() { undeclared = 1; }"));
    assertTrue(e.getMessage().startsWith("nvrtcCompileProgram failed: "), e.getMessage());
    assertTrue(e.getMessage().contains("undeclared"), e.getMessage());
    String fine = "extern \"C\" __global__ void f() {}";
    e =
        assertThrows(
            DeviceException.class, () -> CudaModule.compile(device, fine, "--no-such-option"));
    assertTrue(e.getMessage().contains("--no-such-option"), e.getMessage());
  }

  private static void requireCompiler() {
    Availability compiler = CudaModule.compilerAvailability();
    if (!compiler.usable()) {
      System.out.println("not compiled here: " + compiler.reason());
    }
    Assumptions.assumeTrue(compiler.usable(), compiler.reason());
  }
}

package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests graphs on a real GPU. The kernel adds one to every element. */
class CudaGraphOnGpu {
  private static final int COUNT = 100;

  private CudaDevice device;
  private CudaModule module;
  private CudaStream stream;
  private CudaBuffer buffer;

  @BeforeEach
  void open() throws IOException {
    device = new CudaDevice(CudaLibrary.api(), 0);
    try (InputStream in = CudaGraphOnGpu.class.getResourceAsStream("compute/user.ptx")) {
      module = CudaModule.load(device, new String(in.readAllBytes(), StandardCharsets.UTF_8));
    }
    stream = device.createStream();
    buffer = device.allocate(DataType.INT32, COUNT, stream);
    stream.await();
  }

  @AfterEach
  void close() {
    buffer.close();
    stream.close();
    module.close();
    device.close();
  }

  private void addOne() {
    module.kernel("slow").launch(stream, Grid.of(1, 128), buffer, COUNT, 0L);
  }

  private CudaGraph captured(int launches) {
    stream.beginCapture();
    for (int i = 0; i < launches; i++) {
      addOne();
    }
    return stream.endCapture();
  }

  private void assertHolds(int expected) {
    int[] values = new int[COUNT];
    buffer.copyTo(values);
    for (int value : values) {
      assertEquals(expected, value);
    }
  }

  @Test
  void whatIsCapturedRunsWhenItIsLaunched() {
    try (CudaGraph graph = captured(10)) {
      assertHolds(0);
      graph.launch(stream);
      addOne();
      graph.launch(stream);
      assertHolds(21);
      try (CudaStream other = device.createStream()) {
        graph.launch(other);
        other.await();
      }
      assertHolds(31);
      graph.launch(stream);
    }
    assertHolds(41); // close waits for enqueued work
  }

  @Test
  void aStreamTellsWhetherItIsCaptured() {
    assertFalse(stream.isCapturing());
    stream.beginCapture();
    assertTrue(stream.isCapturing());
    assertFalse(device.stream().isCapturing());
    addOne();
    stream.endCapture().close();
    assertFalse(stream.isCapturing());
    assertHolds(0);
  }

  @Test
  void waitingMakesACaptureFailAndTheStreamGoesOn() {
    stream.beginCapture();
    addOne();
    assertThrows(DeviceException.class, stream::await);
    assertTrue(stream.isCapturing());
    DeviceException e = assertThrows(DeviceException.class, stream::endCapture);
    assertTrue(e.getMessage().contains("STREAM_CAPTURE_INVALIDATED (901)"), e.getMessage());
    assertFalse(stream.isCapturing());
    addOne();
    assertHolds(1);
    try (CudaGraph graph = captured(2)) {
      graph.launch(stream);
      assertHolds(3);
    }
  }

  @Test
  void anEmptyCaptureIsRefused() {
    stream.beginCapture();
    IllegalStateException e = assertThrows(IllegalStateException.class, stream::endCapture);
    assertTrue(e.getMessage().startsWith("nothing was captured: "), e.getMessage());
    addOne();
    assertHolds(1);
  }

  @Test
  void otherThreadsMayWaitAndAllocateMeanwhile() throws InterruptedException {
    stream.beginCapture();
    addOne();
    Throwable[] thrown = new Throwable[1];
    Thread thread =
        new Thread(
            () -> {
              try (CudaBuffer own = device.allocate(DataType.FLOAT32, 1 << 20)) {
                own.copyFrom(new float[1 << 20]);
                device.stream().await();
              }
            });
    thread.setUncaughtExceptionHandler((t, e) -> thrown[0] = e);
    thread.start();
    thread.join();
    assertEquals(null, thrown[0]);
    try (CudaGraph graph = stream.endCapture()) {
      graph.launch(stream);
      assertHolds(1);
    }
  }

  @Test
  void launchingAndAskingAllocateNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long self = Thread.currentThread().getId();
    try (CudaGraph graph = captured(1)) {
      long allocated = Long.MAX_VALUE;
      for (int round = 0; round < 5; round++) { // the first rounds warm up
        long before = threads.getThreadAllocatedBytes(self);
        for (int i = 0; i < 1000; i++) {
          graph.launch(stream);
          stream.isCapturing();
        }
        allocated = Math.min(allocated, threads.getThreadAllocatedBytes(self) - before);
      }
      assertTrue(allocated < 1000, "allocated=" + allocated);
      assertHolds(5000);
    }
  }
}

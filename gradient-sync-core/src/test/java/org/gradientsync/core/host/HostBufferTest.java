package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.junit.jupiter.api.Test;

/** Features of host memory; HostDeviceTest of gradient-sync-test runs the buffer contract. */
class HostBufferTest {
  @Test
  void wrapsMemoryInPlace() {
    HostDevice device = new HostDevice();
    ByteBuffer memory = ByteBuffer.allocateDirect(20).order(ByteOrder.nativeOrder());
    memory.position(4).limit(16);
    DeviceBuffer buffer = device.wrap(DataType.INT32, memory);
    assertEquals(3, buffer.count());
    buffer.copyFrom(new int[] {1, 2, 3});
    assertEquals(1, memory.getInt(4));
    assertEquals(3, memory.getInt(12));
    buffer.close();
    assertEquals(3, memory.getInt(12));
  }

  @Test
  void givesItsBytesInPlace() {
    HostDevice device = new HostDevice();
    DeviceBuffer whole = device.allocate(DataType.FLOAT32, 7);
    whole.copyFrom(new float[] {1, 2, 3, 4, 5, 6, 7});
    HostBuffer view = (HostBuffer) whole.slice(3, 2);
    ByteBuffer bytes = view.hostMemory();
    assertEquals(8, bytes.remaining());
    assertEquals(5, bytes.asFloatBuffer().get(1));
    bytes.asFloatBuffer().put(0, 9);
    float[] values = new float[7];
    whole.copyTo(values);
    assertArrayEquals(new float[] {1, 2, 3, 9, 5, 6, 7}, values);
    assertEquals(0, ((HostBuffer) whole.slice(7, 0)).hostMemory().remaining());
    whole.close();
    assertThrows(IllegalStateException.class, view::hostMemory);
  }

  @Test
  void emptyPartsOverlapNothing() {
    AbstractDeviceBuffer whole = new HostDevice().allocate(DataType.FLOAT32, 7);
    assertTrue(whole.overlaps(whole.slice(6, 1)));
    assertFalse(whole.overlaps(whole.slice(3, 0)));
    assertFalse(whole.slice(3, 0).overlaps(whole));
  }

  @Test
  void refusesMemoryThatItCannotUse() {
    HostDevice device = new HostDevice();
    ByteBuffer direct = ByteBuffer.allocateDirect(10).order(ByteOrder.nativeOrder());
    IllegalArgumentException e =
        assertThrows(
            IllegalArgumentException.class,
            () -> device.wrap(DataType.FLOAT16, ByteBuffer.allocateDirect(10)));
    assertTrue(e.getMessage().contains("native byte order"), e.getMessage());
    assertThrows(IllegalArgumentException.class, () -> device.wrap(DataType.INT32, direct));
    assertThrows(
        IllegalArgumentException.class,
        () -> device.wrap(DataType.FLOAT16, direct.asReadOnlyBuffer()));
    assertThrows(
        IllegalArgumentException.class,
        () -> device.wrap(DataType.FLOAT16, ByteBuffer.allocate(10)));
    assertThrows(NullPointerException.class, () -> device.wrap(null, direct));
    assertThrows(NullPointerException.class, () -> device.wrap(DataType.INT32, null));
  }

  @Test
  void viewsEndAtSegments() {
    HostDevice device = new HostDevice(64);
    AbstractDeviceBuffer buffer = device.allocate(DataType.FLOAT32, 40);
    assertNotNull(buffer.nativeView(0, 16));
    assertNotNull(buffer.nativeView(16, 16));
    assertNull(buffer.nativeView(15, 2));
    assertNull(buffer.slice(10, 20).nativeView(5, 2));
    assertEquals(64, ((HostBuffer) buffer.slice(16, 16)).hostMemory().remaining());
    HostBuffer across = (HostBuffer) buffer.slice(10, 20);
    String message =
        assertThrows(UnsupportedOperationException.class, across::hostMemory).getMessage();
    assertTrue(message.contains("; hostSegments() returns the parts"), message);
    List<Integer> counts = new ArrayList<>();
    for (DeviceBuffer part : across.hostSegments()) {
      int remaining = part.floats().remaining();
      for (int i = 0; i < remaining; i++) {
        part.floats().put(i, counts.size() * 100 + i);
      }
      counts.add(remaining);
    }
    assertEquals(List.of(6, 14), counts);
    float[] values = new float[20];
    across.copyTo(values);
    assertEquals(5, values[5]);
    assertEquals(113, values[19]);
    assertEquals(List.of(), buffer.slice(16, 0).hostSegments());
    assertEquals(1, buffer.slice(0, 16).hostSegments().size());
    buffer.close();
    assertThrows(IllegalStateException.class, across::hostSegments);
  }

  @Test
  void reportsTheRequestWhenMemoryRunsOut() throws Exception {
    Process child =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:MaxDirectMemorySize=16m",
                "-cp",
                System.getProperty("java.class.path"),
                AskForTooMuch.class.getName())
            .redirectErrorStream(true)
            .start();
    String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, child.waitFor(), output);
    assertTrue(output.contains("out of host memory: type=FLOAT64, count=4000000"), output);
    assertTrue(output.contains("bytes=32000000"), output);
    assertTrue(output.contains("small ones still work"), output);
  }

  /** Runs in a JVM with little memory. */
  static final class AskForTooMuch {
    private AskForTooMuch() {}

    public static void main(String[] args) {
      HostDevice device = new HostDevice();
      try {
        device.allocate(DataType.FLOAT64, 4_000_000);
      } catch (GradientSyncException e) {
        System.out.println(e.getMessage());
      }
      device.allocate(DataType.FLOAT64, 4_000).close();
      System.out.println("small ones still work");
    }
  }

  @Test
  void fallsBackWithoutSharedMemory() throws IOException {
    SharedFiles files = new SharedFiles();
    HostMemory before = files.create(Integer.BYTES, 1 << 20);
    Path next = SharedFiles.path(files.owner(), before.id() + 1);
    before.release();
    Files.createFile(next); // so that the next file cannot be created
    HostDevice device = new HostDevice();
    device.share(files);
    try (files;
        HostBuffer buffer = (HostBuffer) device.allocate(DataType.INT32, 3)) {
      assertEquals(HostMemory.PRIVATE, buffer.memoryId());
      buffer.copyFrom(new int[] {1, 2, 3});
    }
  }

  @Test
  void mappedMemoryShowsChangesAndEndsWithItsBuffer() {
    try (SharedFiles files = new SharedFiles()) {
      HostDevice device = new HostDevice();
      device.share(files);
      int count = 20_000; // smaller buffers share files: SharedBlocksTest
      HostBuffer buffer = (HostBuffer) device.allocate(DataType.INT32, count);
      int[] values = new int[count];
      values[count - 1] = 3;
      buffer.copyFrom(values);
      HostDevice other = new HostDevice();
      HostBuffer mapped = other.map(DataType.INT32, files.owner(), buffer.memoryId());
      int[] seen = new int[count];
      mapped.copyTo(seen);
      assertEquals(3, seen[count - 1]);
      long id = buffer.memoryId();
      buffer.close();
      assertThrows(UncheckedIOException.class, () -> other.map(DataType.INT32, files.owner(), id));
    }
  }
}

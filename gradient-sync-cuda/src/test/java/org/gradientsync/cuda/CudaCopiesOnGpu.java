package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests copies of many buffers at once on a real GPU. All bits are compared. */
class CudaCopiesOnGpu {
  private final Random random = new Random(7);
  private CudaDevice device;

  /** Views of two large buffers, with gaps, and what the second one must hold after the copies. */
  private final class Copies implements AutoCloseable {
    final CudaBuffer from;
    final CudaBuffer to;
    final DeviceBuffer[] sources;
    final DeviceBuffer[] targets;
    private final List<int[]> ranges = new ArrayList<>(); // source, target, count
    private final short[] given;
    private final short[] expected;
    private int sourceEnd;
    private int targetEnd;

    /**
     * @param each for each copy: its count, and how many elements behind a multiple of 16 bytes
     *     source and target begin
     */
    Copies(CudaStream stream, List<int[]> each) {
      each.forEach(copy -> add(copy[0], copy[1], copy[2]));
      from = device.allocate(DataType.FLOAT16, sourceEnd + 8, stream);
      to = device.allocate(DataType.FLOAT16, targetEnd + 8, stream);
      given = new short[sourceEnd + 8];
      expected = new short[targetEnd + 8];
      sources = ranges.stream().map(r -> from.slice(r[0], r[2])).toArray(DeviceBuffer[]::new);
      targets = ranges.stream().map(r -> to.slice(r[1], r[2])).toArray(DeviceBuffer[]::new);
      fill();
    }

    private void add(int count, int sourceOffset, int targetOffset) {
      int source = sourceEnd + 8 + sourceOffset; // with a gap of eight elements or more
      int target = targetEnd + 8 + targetOffset;
      ranges.add(new int[] {source, target, count});
      sourceEnd = (source + count + 7) / 8 * 8;
      targetEnd = (target + count + 7) / 8 * 8;
    }

    /** Fills both buffers anew. */
    void fill() {
      for (int i = 0; i < given.length; i++) {
        given[i] = (short) random.nextInt();
      }
      for (int i = 0; i < expected.length; i++) {
        expected[i] = (short) random.nextInt();
      }
      from.copyFrom(given);
      to.copyFrom(expected);
      for (int[] range : ranges) {
        System.arraycopy(given, range[0], expected, range[1], range[2]);
      }
    }

    void assertCopied() {
      short[] actual = new short[expected.length];
      to.copyTo(actual);
      assertArrayEquals(expected, actual);
      short[] kept = new short[given.length];
      from.copyTo(kept);
      assertArrayEquals(given, kept);
    }

    @Override
    public void close() {
      from.close();
      to.close();
    }
  }

  @BeforeEach
  void open() {
    device = new CudaDevice(CudaLibrary.api(), 0);
  }

  @AfterEach
  void close() {
    device.close();
  }

  private Copies same(int copies, int count) {
    List<int[]> each = new ArrayList<>();
    for (int i = 0; i < copies; i++) {
      each.add(new int[] {count, i % 8, i / 8 % 8});
    }
    return new Copies(device.stream(), each);
  }

  @Test
  void allAlignmentsAndLengths() {
    List<int[]> each = new ArrayList<>();
    for (int count : new int[] {0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 255, 1024, 4099, 33_001}) {
      for (int source = 0; source < 8; source++) {
        for (int target = 0; target < 8; target++) {
          each.add(new int[] {count, source, target});
        }
      }
    }
    try (Copies copies = new Copies(device.stream(), each)) {
      device.copyAll(copies.sources, copies.targets);
      copies.assertCopied();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 145, 146, 147, 292, 293, 1000})
  void asManyAsOneLaunchTakesAndMore(int count) {
    try (Copies copies = same(count, 1001)) {
      device.copyAll(copies.sources, copies.targets);
      copies.assertCopied();
    }
  }

  @Test
  void largeAndSmallTogether() {
    List<int[]> each = new ArrayList<>();
    for (int count : new int[] {20_000_003, 1, 0, 32 << 10, 5_000_000, 3}) {
      each.add(new int[] {count, count % 8, 0});
      each.add(new int[] {count, 3, 3});
    }
    try (Copies copies = new Copies(device.stream(), each)) {
      device.copyAll(copies.sources, copies.targets);
      copies.assertCopied();
    }
  }

  @Test
  void nothingToCopy() {
    device.copyAll(new DeviceBuffer[0], new DeviceBuffer[0]);
    try (CudaBuffer empty = device.allocate(DataType.FLOAT64, 0)) {
      device.copyAll(new DeviceBuffer[] {empty, empty}, new DeviceBuffer[] {empty, empty});
      device.await(empty);
    }
  }

  @Test
  void elementsOfAllSizesAreCopied() {
    for (DataType type : DataType.values()) {
      int bytes = 999 * type.sizeInBytes();
      byte[] values = new byte[bytes];
      random.nextBytes(values);
      try (CudaBuffer a = device.allocate(type, 999);
          CudaBuffer b = device.allocate(type, 1001)) {
        a.copyFrom(direct(values));
        device.copyAll(new DeviceBuffer[] {a}, new DeviceBuffer[] {b.slice(1, 999)});
        ByteBuffer back = direct(new byte[bytes]);
        b.slice(1, 999).copyTo(back);
        byte[] actual = new byte[bytes];
        back.get(0, actual);
        assertArrayEquals(values, actual, type.toString());
      }
    }
  }

  private static ByteBuffer direct(byte[] values) {
    return ByteBuffer.allocateDirect(values.length).order(ByteOrder.nativeOrder()).put(0, values);
  }

  /** Each row of copies reads what the one before has written. */
  @Test
  void copiesKeepTheOrderOfTheirStream() {
    try (CudaStream stream = device.createStream();
        CudaBuffer a = device.allocate(DataType.INT32, 200 * 1024, stream);
        CudaBuffer b = device.allocate(DataType.INT32, 200 * 1024, stream)) {
      int[] values = random.ints(200 * 1024).toArray();
      a.copyFrom(values);
      DeviceBuffer[] parts = new DeviceBuffer[200];
      DeviceBuffer[] shifted = new DeviceBuffer[200];
      for (int i = 0; i < 200; i++) {
        parts[i] = a.slice(1024L * i, 1024);
        shifted[i] = b.slice(1024L * ((i + 1) % 200), 1024);
      }
      DeviceBuffer[] same = new DeviceBuffer[200];
      for (int i = 0; i < 200; i++) {
        same[i] = b.slice(1024L * i, 1024);
      }
      for (int round = 0; round < 200; round++) {
        device.copyAll(parts, shifted);
        device.copyAll(same, parts);
      }
      int[] actual = new int[200 * 1024];
      a.copyTo(actual);
      assertArrayEquals(values, actual);
    }
  }

  /** The first copies of a device may be captured, too. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copiesAreCaptured(boolean before) {
    try (CudaStream stream = device.createStream()) {
      List<int[]> each = new ArrayList<>();
      for (int i = 0; i < 400; i++) {
        each.add(new int[] {i * 3, i % 8, i % 3});
      }
      try (Copies copies = new Copies(stream, each);
          Copies others = same(300, 77)) {
        if (before) {
          device.copyAll(others.sources, others.targets);
          others.assertCopied();
        }
        stream.beginCapture();
        device.copyAll(copies.sources, copies.targets);
        try (CudaGraph graph = stream.endCapture()) {
          for (int round = 0; round < 3; round++) {
            others.fill();
            device.copyAll(others.sources, others.targets); // must not change what was captured
            copies.fill();
            graph.launch(stream);
            copies.assertCopied();
            others.assertCopied();
          }
        }
      }
    }
  }

  @Test
  void allocatesNothingWhenWarm() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long self = Thread.currentThread().getId();
    try (Copies copies = same(200, 1024)) {
      long allocated = Long.MAX_VALUE;
      for (int round = 0; round < 5; round++) { // the first rounds warm up
        long begin = threads.getThreadAllocatedBytes(self);
        for (int i = 0; i < 1000; i++) {
          device.copyAll(copies.sources, copies.targets);
        }
        allocated = Math.min(allocated, threads.getThreadAllocatedBytes(self) - begin);
      }
      assertTrue(allocated < 1000, "allocated=" + allocated);
      copies.assertCopied();
    }
  }
}

package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.GradientSyncException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Small shared buffers lie in few files, and too many mappings are refused. */
class SharedBlocksTest {
  private static final int LARGE = 100_000;

  private final HostDevice device = new HostDevice();
  private SharedFiles files = new SharedFiles();

  @AfterEach
  void tearDown() {
    files.close();
  }

  private HostBuffer allocate(DataType type, long count) {
    device.share(files);
    return (HostBuffer) device.allocate(type, count);
  }

  private long filesLeft() throws IOException {
    String own =
        "-" + files.owner().process() + "-" + Long.toHexString(files.owner().secret()) + "-";
    try (Stream<Path> all = Files.list(Path.of("/dev/shm"))) {
      return all.filter(file -> file.toString().contains(own)).count();
    }
  }

  private static int[] values(int count, int value) {
    int[] values = new int[count];
    java.util.Arrays.fill(values, value);
    return values;
  }

  @Test
  void smallBuffersShareFilesWithoutOverlap() throws IOException {
    Random random = new Random(1);
    List<HostBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      HostBuffer buffer = allocate(DataType.INT32, 1 + random.nextInt(40));
      assertArrayEquals(new int[(int) buffer.count()], read(buffer));
      buffer.copyFrom(values((int) buffer.count(), i));
      assertNotEquals(HostMemory.PRIVATE, buffer.memoryId());
      assertEquals(0, buffer.memoryOffset() % 16, "a cache line");
      buffers.add(buffer);
    }
    assertTrue(filesLeft() < 50, () -> "too many files");
    HostDevice peer = new HostDevice();
    for (int i = 0; i < buffers.size(); i++) {
      HostBuffer buffer = buffers.get(i);
      int[] expected = values((int) buffer.count(), i);
      assertArrayEquals(expected, read(buffer));
      if (i % 997 == 0) {
        try (HostBuffer mapped = peer.map(DataType.FLOAT64, files.owner(), buffer.memoryId())) {
          assertArrayEquals(
              expected,
              read(
                  (HostBuffer)
                      mapped
                          .reinterpret(DataType.INT32)
                          .slice(buffer.memoryOffset(), buffer.count())));
        }
      }
    }
    Collections.shuffle(buffers, random);
    buffers.forEach(HostBuffer::close);
    assertEquals(0, filesLeft());
  }

  private static int[] read(HostBuffer buffer) {
    int[] values = new int[(int) buffer.count()];
    buffer.copyTo(values);
    return values;
  }

  @Test
  void freedPiecesAreReusedAsZeros() throws IOException {
    List<HostBuffer> lasting = new ArrayList<>();
    for (int step = 0; step < 3_000; step++) {
      HostBuffer buffer = allocate(DataType.INT32, 16_000);
      assertEquals(0, read(buffer)[15_999]);
      buffer.copyFrom(values(16_000, step + 1));
      if (step % 100 == 0) {
        lasting.add(allocate(DataType.INT32, 16_000));
      }
      buffer.close();
    }
    assertEquals(30, lasting.size());
    assertTrue(filesLeft() <= 10, () -> "it leaks");
  }

  @Test
  void piecesThatOthersMayReadAreNotReused() throws IOException {
    HostBuffer first = allocate(DataType.INT32, 16);
    first.copyFrom(values(16, 7));
    HostBuffer second = allocate(DataType.INT32, 16);
    HostBuffer mapped = new HostDevice().map(DataType.INT32, files.owner(), first.memoryId());
    long offset = first.memoryOffset();
    files.keep();
    first.close();
    for (int i = 0; i < 2_000; i++) {
      allocate(DataType.INT32, 16);
    }
    second.close(); // the last piece: deletes the file, keeps the mapping
    assertArrayEquals(values(16, 7), read((HostBuffer) mapped.slice(offset, 16)));
  }

  @Test
  void emptyAndLargeBuffersUseNoBlock() throws IOException {
    assertEquals(0, allocate(DataType.INT32, 0).count());
    assertEquals(0, filesLeft());
    HostBuffer large = allocate(DataType.INT32, LARGE);
    assertEquals(0, large.memoryOffset());
    assertEquals(1, filesLeft());
    large.close();
    assertEquals(0, filesLeft());
  }

  @Test
  void tooManyMappingsAreRefusedBeforeTheJvmAborts(@TempDir Path root) throws IOException {
    Path limit = root.resolve("proc/sys/vm/max_map_count");
    Path maps = root.resolve("proc/self/maps");
    Files.createDirectories(limit.getParent());
    Files.createDirectories(maps.getParent());
    Files.writeString(limit, "800\n");
    Files.writeString(maps, "7f00-7f01 r--p\n".repeat(692)); // 100 are spared
    files.close();
    files = new SharedFiles(new MappingLimit(root));
    HostBuffer large = allocate(DataType.INT32, LARGE);
    HostBuffer small = allocate(DataType.INT32, 3);
    Files.writeString(maps, "7f00-7f01 r--p\n".repeat(700));
    GradientSyncException e =
        assertThrows(GradientSyncException.class, () -> allocate(DataType.INT32, LARGE));
    assertEquals(
        "out of host memory: type=INT32, count=100000, bytes=400000; this process has too many"
            + " mappings of memory: mappings=700, vm.max_map_count=800; close buffers, make one"
            + " large buffer and take slices of it, or raise the limit: sysctl -w"
            + " vm.max_map_count=3200",
        e.getMessage());
    assertEquals(2, filesLeft());
    allocate(DataType.INT32, 3).close(); // needs no new mapping
    large.close();
    small.close();
    Files.delete(maps);
    allocate(DataType.INT32, LARGE).close(); // the limit cannot be read
  }

  @Test
  void thisProcessMayMapMore() throws IOException {
    MappingLimit.OF_THIS_PROCESS.require(1);
    assertThrows(
        TooManyMappingsException.class, () -> MappingLimit.OF_THIS_PROCESS.require(1 << 30));
  }
}

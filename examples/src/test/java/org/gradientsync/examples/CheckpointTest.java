package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests writing weights to a file and reading them back. */
class CheckpointTest {
  private static final int[] WIDTHS = {300, 301, 2}; // the first layer takes more than one piece

  @TempDir Path folder;
  private GradientSync sync;
  private Path file;

  @BeforeEach
  void setUp() {
    sync = GradientSync.create();
    file = folder.resolve("checkpoint");
  }

  @AfterEach
  void tearDown() {
    sync.close();
  }

  private static Checkpoint.Training training(int... widths) {
    return new Checkpoint.Training("IRIS", "SGD", 5, widths);
  }

  private List<DeviceBuffer> weights(DataType type, int[] widths) {
    List<DeviceBuffer> weights = new ArrayList<>();
    for (Layer layer : HostMlp.layers(widths)) {
      weights.add(sync.allocate(type, layer.count()));
    }
    return weights;
  }

  /** Fills weights with arbitrary bits, including NaNs. */
  private static byte[][] fill(List<DeviceBuffer> weights) {
    Random random = new Random(5);
    byte[][] all = new byte[weights.size()][];
    for (int i = 0; i < all.length; i++) {
      all[i] = new byte[(int) weights.get(i).sizeInBytes()];
      random.nextBytes(all[i]);
      weights.get(i).copyFrom(ByteBuffer.wrap(all[i]).order(ByteOrder.nativeOrder()));
    }
    return all;
  }

  private static byte[] bits(DeviceBuffer weights) {
    byte[] bits = new byte[(int) weights.sizeInBytes()];
    weights.copyTo(ByteBuffer.wrap(bits).order(ByteOrder.nativeOrder()));
    return bits;
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT32", "FLOAT64"})
  void bitsComeBack(DataType type) throws IOException {
    List<DeviceBuffer> written = weights(type, WIDTHS);
    byte[][] bits = fill(written);
    Checkpoint.write(file, training(WIDTHS), 1L << 40, written);
    List<DeviceBuffer> read = weights(type, WIDTHS);
    assertEquals(1L << 40, Checkpoint.read(file, training(WIDTHS), read));
    for (int i = 0; i < bits.length; i++) {
      assertArrayEquals(bits[i], bits(read.get(i)));
    }
    assertEquals(Weights.digest(written), Weights.digest(read));
  }

  @Test
  void everyBitCountsForTheDigest() {
    List<DeviceBuffer> weights = weights(DataType.FLOAT32, WIDTHS);
    byte[][] bits = fill(weights);
    long digest = Weights.digest(weights);
    bits[1][bits[1].length - 1] ^= 1;
    weights.get(1).copyFrom(ByteBuffer.wrap(bits[1]).order(ByteOrder.nativeOrder()));
    assertTrue(digest != Weights.digest(weights));
  }

  @Test
  void anyDamageIsFound() throws IOException {
    int[] widths = {3, 2};
    List<DeviceBuffer> weights = weights(DataType.FLOAT64, widths);
    fill(weights);
    Checkpoint.write(file, training(widths), 7, weights);
    byte[] whole = Files.readAllBytes(file);
    byte[] before = bits(weights.get(0));
    assertEquals(55 + before.length + Long.BYTES, whole.length);
    assertEquals(
        ByteBuffer.wrap(before).order(ByteOrder.nativeOrder()).getLong(),
        ByteBuffer.wrap(whole).getLong(55),
        "the first weight is not where it should be");
    weights.get(0).fillZero();
    for (int i = 0; i < whole.length; i++) {
      byte[] damaged = whole.clone();
      damaged[i] ^= 4;
      refuses(damaged, i < Long.BYTES ? "not a checkpoint" : "checkpoint is damaged", weights);
      refuses(
          Arrays.copyOf(whole, i),
          i < Long.BYTES ? "not a checkpoint" : "checkpoint is damaged",
          weights);
    }
    refuses(Arrays.copyOf(whole, whole.length + 8), "checkpoint is damaged", weights);
    assertArrayEquals(new byte[before.length], bits(weights.get(0)), "weights were changed");
    Files.write(file, whole);
    assertEquals(7, Checkpoint.read(file, training(widths), weights));
    assertArrayEquals(before, bits(weights.get(0)));
  }

  private void refuses(byte[] content, String reason, List<DeviceBuffer> weights)
      throws IOException {
    Files.write(file, content);
    IOException e =
        assertThrows(
            IOException.class, () -> Checkpoint.read(file, training(new int[] {3, 2}), weights));
    assertTrue(e.getMessage().startsWith(reason), e::toString);
  }

  @Test
  void anotherModelsIsRefused() throws IOException {
    Checkpoint.write(file, training(WIDTHS), 7, weights(DataType.FLOAT64, WIDTHS));
    IOException type =
        assertThrows(
            IOException.class,
            () -> Checkpoint.read(file, training(WIDTHS), weights(DataType.FLOAT32, WIDTHS)));
    assertTrue(type.getMessage().contains("bytes of a weight=8, expected=4"), type::toString);
    int[] other = {300, 301, 3};
    IOException widths =
        assertThrows(
            IOException.class,
            () -> Checkpoint.read(file, training(other), weights(DataType.FLOAT64, other)));
    assertTrue(
        widths.getMessage().contains("widths=[300, 301, 2], expected=[300, 301, 3]"),
        widths::toString);
  }

  @Test
  void onlyThisUsersOwnFileIsRead() throws IOException {
    int[] widths = {3, 2};
    List<DeviceBuffer> weights = weights(DataType.FLOAT64, widths);
    Checkpoint.write(file, training(widths), 7, weights);
    assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
    Path link = Files.createSymbolicLink(folder.resolve("link"), file);
    IOException linked =
        assertThrows(IOException.class, () -> Checkpoint.read(link, training(widths), weights));
    assertTrue(linked.getMessage().contains("it is a symbolic link"), linked::toString);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    IOException open =
        assertThrows(IOException.class, () -> Checkpoint.read(file, training(widths), weights));
    assertTrue(open.getMessage().contains("other users can write to it"), open::toString);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    assertEquals(7, Checkpoint.read(file, training(widths), weights));
  }

  @Test
  void ofAHugeFileOnlyTheHeaderIsRead() throws IOException {
    int[] widths = {3, 2};
    List<DeviceBuffer> weights = weights(DataType.FLOAT64, widths);
    Checkpoint.write(file, training(widths), 7, weights);
    try (RandomAccessFile huge = new RandomAccessFile(file.toFile(), "rw")) {
      huge.setLength(1L << 42); // reading all of it would take an hour
    }
    IOException e =
        assertThrows(IOException.class, () -> Checkpoint.read(file, training(widths), weights));
    assertTrue(e.getMessage().startsWith("checkpoint is damaged"), e::toString);
  }
}

package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gradientsync.core.host.OwnFiles;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the cache of measurements, and how it handles damaged files. */
class PeerTuningCacheTest {
  private static final String GPU = "NVIDIA H200";
  private static final String KEY = "NVIDIA_H200.12060.4-ranks.share-2";

  private final PeerLayout layout = new PeerLayout(4);
  private final Path folder;
  private final Path file;
  private final PeerTuningCache cache;

  PeerTuningCacheTest(@TempDir Path temporary) {
    folder = temporary.resolve("some/cache");
    file = folder.resolve("peer-tuning.properties");
    cache = cache(12060, 4, 2);
  }

  private PeerTuningCache cache(int driver, int ranks, int place) {
    Settings settings = new Settings(Map.of("dev.cache", folder.toString()));
    return new PeerTuningCache(settings, GPU, driver, ranks, place);
  }

  private void put(String text) throws IOException {
    Files.createDirectories(folder);
    Files.writeString(file, text);
  }

  private List<String> files() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(f -> f.getFileName().toString()).toList();
    }
  }

  @Test
  void whatWasWrittenIsRead() throws IOException {
    assertNull(cache.read(layout));
    cache.write(new long[] {123_456, 7_654_321});
    assertArrayEquals(new long[] {123_456, 7_654_321}, cache.read(layout));
    cache.write(new long[] {1, 2});
    assertArrayEquals(new long[] {1, 2}, cache(12060, 4, 2).read(layout));
    assertEquals(List.of("peer-tuning.properties"), files());
  }

  @Test
  void everyGpuDriverNumberOfRanksAndShareHasItsOwn() {
    cache.write(new long[] {10, 20});
    assertNull(cache(12070, 4, 2).read(layout));
    assertNull(cache(12060, 3, 2).read(layout));
    assertNull(cache(12060, 4, 4).read(layout));
    Settings settings = new Settings(Map.of("dev.cache", folder.toString()));
    assertNull(new PeerTuningCache(settings, "NVIDIA H100", 12060, 4, 2).read(layout));
  }

  @Test
  void writersKeepEachOthersKeys() {
    PeerTuningCache other = cache(12060, 8, 2);
    PeerTuningCache third = cache(12060, 8, 4);
    cache.write(new long[] {10, 20});
    other.write(new long[] {30, 40});
    third.write(new long[] {50, 60});
    cache.write(new long[] {11, 21});
    assertArrayEquals(new long[] {11, 21}, cache.read(layout));
    assertArrayEquals(new long[] {30, 40}, other.read(layout));
    assertArrayEquals(new long[] {50, 60}, third.read(layout));
  }

  @Test
  void isForThisUserAlone() throws IOException {
    cache.write(new long[] {10, 20});
    assertEquals("rw-------", permissions(file));
    assertEquals("rwx------", permissions(folder));
    assertEquals("rwx------", permissions(folder.getParent()));
  }

  @Test
  void aFolderThatIsThereStaysAsItIs() throws IOException {
    Files.createDirectories(folder);
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-x---"));
    cache.write(new long[] {10, 20});
    assertEquals("rwxr-x---", permissions(folder));
    assertEquals("rw-------", permissions(file));
  }

  private static String permissions(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        ",",
        "10",
        "10,",
        ",20",
        "10,20,30",
        "-1,20",
        "10,-20",
        "20,10",
        "0,8388609", // more than two_shot can take
        "ten,20",
        "1e3,1e4",
        "99999999999999999999,99999999999999999999"
      })
  void whatCannotBeIsNotRead(String value) throws IOException {
    put(KEY + "=" + value + "\n");
    assertNull(cache.read(layout));
    put(KEY + "= 10 , 20 \n"); // so the key is right
    assertArrayEquals(new long[] {10, 20}, cache.read(layout));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "\0\0\0\0",
        "\\u12",
        "key=\\uzzzz\n" + KEY + "=10,20",
        "ÿþ\u0001",
        "=",
        "\n\n"
      })
  void aDamagedFileIsAsGoodAsNone(String text) throws IOException {
    Files.createDirectories(folder);
    Files.write(file, text.getBytes(StandardCharsets.ISO_8859_1));
    assertNull(cache.read(layout));
    cache.write(new long[] {10, 20});
    assertArrayEquals(new long[] {10, 20}, cache.read(layout));
  }

  @Test
  void aFolderInItsPlaceIsNoFailure() throws IOException {
    Files.createDirectories(file.resolve("full"));
    assertNull(cache.read(layout));
    cache.write(new long[] {10, 20});
    assertNull(cache.read(layout));
    assertEquals(List.of("peer-tuning.properties"), files(), "something is left behind");
  }

  @Test
  void aFolderThatCannotBeMadeIsNoFailure() throws IOException {
    Files.createDirectories(folder.getParent());
    Files.writeString(folder, "not a folder");
    cache.write(new long[] {10, 20});
    assertNull(cache.read(layout));
    assertEquals("not a folder", Files.readString(folder));
  }

  @Test
  void aFolderThatCannotBeWrittenIsNoFailure() throws IOException {
    Files.createDirectories(folder.getParent());
    Files.createFile(folder); // a file in the folder's place: not even root can write into it
    cache.write(new long[] {10, 20});
    assertNull(cache.read(layout));
    Files.delete(folder);
    cache.write(new long[] {10, 20});
    assertTrue(Files.exists(file));
  }

  @Test
  void anotherUsersFileIsNeitherReadNorKept() throws IOException {
    put(KEY + "=10,20\nother=1,2\n");
    try {
      Files.setAttribute(file, "unix:uid", 12345);
    } catch (IOException e) {
      Files.delete(file); // only root can give files away, but /etc/passwd belongs to another user
      Files.createSymbolicLink(file, Path.of("/etc/passwd"));
    }
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertArrayEquals(new long[] {30, 40}, cache.read(layout));
    assertFalse(Files.readString(file).contains("other"));
  }

  @Test
  void anotherUsersFolderIsNeitherReadNorWritten() throws IOException {
    put(KEY + "=10,20\n");
    Path probe = Files.createTempFile("user", "");
    int user = (int) Files.getAttribute(probe, "unix:uid");
    Files.delete(probe);
    Settings settings = new Settings(Map.of("dev.cache", folder.toString()));
    PeerTuningCache same = new PeerTuningCache(settings, GPU, 12060, 4, 2, OwnFiles.of(user));
    assertArrayEquals(new long[] {10, 20}, same.read(layout));
    PeerTuningCache others = new PeerTuningCache(settings, GPU, 12060, 4, 2, OwnFiles.of(user + 1));
    assertNull(others.read(layout));
    others.write(new long[] {30, 40});
    assertEquals(KEY + "=10,20\n", Files.readString(file));
    assertEquals(List.of("peer-tuning.properties"), files());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxrwxrwx", "rwxrwx---", "rwx----w-"})
  void aFolderThatOthersCanWriteToIsNeitherReadNorWritten(String mode) throws IOException {
    put(KEY + "=10,20\n");
    assertArrayEquals(new long[] {10, 20}, cache.read(layout));
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString(mode));
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertEquals(KEY + "=10,20\n", Files.readString(file));
  }

  @Test
  void aFolderBehindALinkIsNeitherReadNorWritten() throws IOException {
    Path real = Files.createDirectories(folder.resolveSibling("real"));
    Files.createSymbolicLink(folder, real);
    Files.writeString(real.resolve("peer-tuning.properties"), KEY + "=10,20\n");
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertEquals(KEY + "=10,20\n", Files.readString(file));
  }

  @Test
  void aFileThatOthersCanWriteToIsNotRead() throws IOException {
    put(KEY + "=10,20\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertArrayEquals(new long[] {30, 40}, cache.read(layout));
    assertEquals("rw-------", permissions(file));
  }

  @Test
  void aSymbolicLinkIsNotFollowed() throws IOException {
    Files.createDirectories(folder);
    Path target = folder.resolve("target");
    Files.writeString(target, KEY + "=10,20\n");
    Files.createSymbolicLink(file, target);
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertArrayEquals(new long[] {30, 40}, cache.read(layout));
    assertEquals(KEY + "=10,20\n", Files.readString(target));
  }

  @Test
  void aHugeFileIsNotRead() throws IOException {
    put(KEY + "=10,20\n#" + "x".repeat(2 << 20));
    assertNull(cache.read(layout));
    cache.write(new long[] {30, 40});
    assertTrue(Files.size(file) < 1000);
  }
}

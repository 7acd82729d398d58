package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Logged;
import org.gradientsync.core.backend.Processes;
import org.gradientsync.core.backend.TemporaryFilesTest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files in the memory file system, and files that other users have planted there. */
class SharedFilesTest {
  private static final int BYTES = 4096;
  private static final int OTHER_USER = 12345;
  private static final long SELF = ProcessHandle.current().pid();

  private final SharedFiles.Owner owner = ownerIn(Processes.NAMESPACE, SELF);
  private final Path planted = SharedFiles.path(owner, 0);

  private static SharedFiles.Owner ownerIn(long namespace, long process) {
    return new SharedFiles.Owner(namespace, process, ThreadLocalRandom.current().nextLong());
  }

  @AfterEach
  void tearDown() throws IOException {
    Files.deleteIfExists(planted);
  }

  private void plant(int bytes, String mode) throws IOException {
    Files.write(planted, new byte[bytes]);
    Files.setPosixFilePermissions(planted, PosixFilePermissions.fromString(mode));
  }

  private void isRefused(String reason) {
    UncheckedIOException writable =
        assertThrows(UncheckedIOException.class, () -> SharedFiles.openWritable(owner, 0, BYTES));
    assertTrue(writable.getMessage().contains(reason), writable::toString);
    assertTrue(writable.getMessage().contains("file=" + planted), writable::toString);
  }

  private void isRefusedAsABuffer(String reason) {
    UncheckedIOException buffer =
        assertThrows(
            UncheckedIOException.class, () -> new HostDevice().map(DataType.FLOAT32, owner, 0));
    assertTrue(buffer.getMessage().contains(reason), buffer::toString);
  }

  @Test
  void filesArePrivateAndDeletedWithTheirOwner() throws IOException {
    SharedFiles files = new SharedFiles();
    SharedFiles.Writable writable = files.createWritable(BYTES);
    Path path = SharedFiles.path(files.owner(), writable.id());
    assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
    ByteBuffer mapped = SharedFiles.openWritable(files.owner(), writable.id(), BYTES);
    writable.memory().putInt(8, 7);
    assertEquals(7, mapped.getInt(8));
    files.release(writable.id());
    assertFalse(Files.exists(path));
    files.close();
  }

  /** Other processes may have mapped it, and their collectors free it much later. */
  @Test
  void anInterruptedThreadEmptiesWhatItCloses() throws IOException {
    SharedFiles files = new SharedFiles();
    HostMemory memory = files.create(BYTES, 1 << 30);
    Path path = SharedFiles.path(files.owner(), memory.id());
    try (FileChannel other = FileChannel.open(path)) {
      Thread.currentThread().interrupt();
      memory.release();
      assertTrue(Thread.interrupted());
      assertEquals(0, other.size());
    }
    files.close();
  }

  @Test
  void oversizedRequestsAreRefusedUpFront() throws IOException {
    SharedFiles files = new SharedFiles();
    IOException e = assertThrows(IOException.class, () -> files.create(1L << 42, 1 << 30));
    assertTrue(e.getMessage().contains("bytes=" + (1L << 42)), e.getMessage());
    try (Stream<Path> left = Files.list(Path.of("/dev/shm"))) {
      String own = "-" + SELF + "-" + Long.toHexString(files.owner().secret());
      assertEquals(List.of(), left.filter(file -> file.toString().contains(own)).toList());
    }
    files.close();
    try (HostDevice device = new HostDevice();
        Logged logged = new Logged()) {
      device.share();
      GradientSyncException refused =
          assertThrows(
              GradientSyncException.class, () -> device.allocate(DataType.FLOAT32, 1L << 40));
      assertTrue(refused.getMessage().startsWith("out of host memory"), refused.getMessage());
      assertTrue(
          refused
              .getMessage()
              .contains("; the machine has too little memory left: bytes=" + (1L << 42)),
          refused::toString);
      assertFalse(logged.text().contains("/dev/shm"), logged::text); // there is no buffer
    }
  }

  @Test
  void aFileLikeThoseOfAPeerIsMapped() throws IOException {
    plant(BYTES, "rw-------"); // accepted, so the refusals below have other reasons
    assertEquals(BYTES, SharedFiles.openWritable(owner, 0, BYTES).capacity());
    assertEquals(BYTES / 4, new HostDevice().map(DataType.FLOAT32, owner, 0).count());
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, BYTES - 1})
  void aShortFileIsNotMapped(int bytes) throws IOException {
    plant(bytes, "rw-------");
    isRefused("file is too short");
  }

  @Test
  void anEmptyBufferIsNotMapped() throws IOException {
    plant(0, "rw-------");
    isRefusedAsABuffer("file is too short");
  }

  @Test
  void aFileThatIsTooLargeIsNotMapped() throws IOException {
    plant(BYTES + 1, "rw-------");
    isRefused("it is too large");
  }

  @Test
  void aSymbolicLinkIsNotFollowed() throws IOException {
    Path target = Files.createTempFile("target", "");
    try {
      Files.write(target, new byte[BYTES]);
      Files.createSymbolicLink(planted, target);
      isRefused("it is a symbolic link");
      isRefusedAsABuffer("it is a symbolic link");
    } finally {
      Files.delete(target);
    }
  }

  @Test
  void aFileThatOthersCanWriteToIsNotMapped() throws IOException {
    plant(BYTES, "rw-rw-rw-");
    isRefused("other users can write to it: mode=666");
    isRefusedAsABuffer("other users can write to it: mode=666");
  }

  @Test
  void anotherUsersFileIsNotMapped() throws IOException {
    plant(BYTES, "rw-------");
    if (giveAway(planted)) {
      isRefused("it is another user's: owner=" + OTHER_USER);
      isRefusedAsABuffer("it is another user's: owner=" + OTHER_USER);
    }
  }

  @Test
  void staleFilesAreDeleted() throws IOException, InterruptedException {
    Path left = SharedFiles.path(ownerIn(Processes.NAMESPACE, TemporaryFilesTest.ended()), 3);
    Path alive = SharedFiles.path(owner, 3);
    Files.write(left, new byte[BYTES]);
    Files.write(alive, new byte[BYTES]);
    try {
      new SharedFiles().close();
      assertFalse(Files.exists(left));
      assertTrue(Files.exists(alive));
    } finally {
      Files.deleteIfExists(left);
      Files.delete(alive);
    }
  }

  /** A process id of another PID namespace says nothing here. */
  @Test
  void filesOfAnotherNamespaceAreFoundAndKept() throws IOException, InterruptedException {
    SharedFiles.Owner other = ownerIn(Processes.NAMESPACE + 1, TemporaryFilesTest.ended());
    Path path = SharedFiles.path(other, 5);
    Files.write(path, new byte[BYTES]);
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
    try {
      new SharedFiles().close();
      assertTrue(SharedFiles.isThere(other, 5));
      assertEquals(BYTES, SharedFiles.openWritable(other, 5, BYTES).capacity());
    } finally {
      Files.delete(path);
    }
  }

  @Test
  void otherUsersStaleFilesAreKept() throws IOException, InterruptedException {
    Path left = SharedFiles.path(ownerIn(Processes.NAMESPACE, TemporaryFilesTest.ended()), 4);
    Files.write(left, new byte[BYTES]);
    try {
      if (giveAway(left)) {
        new SharedFiles().close();
        assertTrue(Files.exists(left)); // although root could delete it
      }
    } finally {
      Files.delete(left);
    }
  }

  /** Changes the owner if possible. OwnFilesTest tests the same without root. */
  private static boolean giveAway(Path file) throws IOException {
    try {
      Files.setAttribute(file, "unix:uid", OTHER_USER);
      return true;
    } catch (IOException e) {
      System.out.println("SKIPPED: only root can give a file to another user: " + e);
      return false;
    }
  }
}

package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which files are trusted. */
class OwnFilesTest {
  private final OwnFiles own = OwnFiles.ofThisUser();

  @TempDir Path folder;
  private Path file;

  @BeforeEach
  void setUp() throws IOException {
    file = Files.writeString(folder.resolve("file"), "hello");
    mode(file, "rw-r--r--");
  }

  private static void mode(Path path, String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }

  private int user() throws IOException {
    return (int) Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS);
  }

  private static void refuses(OwnFiles files, Path path, String reason) {
    IOException e =
        assertThrows(IOException.class, () -> files.open(path, 5, StandardOpenOption.READ).close());
    assertTrue(e.getMessage().startsWith("not trusted: file=" + path + ", " + reason), e::toString);
  }

  @Test
  void thisUsersFilesAreOpened() throws IOException {
    for (OwnFiles files : new OwnFiles[] {own, OwnFiles.of(user())}) {
      try (FileChannel channel = files.open(file, 5, StandardOpenOption.READ)) {
        assertEquals(5, channel.size());
      }
      assertTrue(files.owns(file));
    }
  }

  @Test
  void otherUsersFilesAreRefused() throws IOException {
    OwnFiles others = OwnFiles.of(user() + 1);
    refuses(others, file, "it is another user's: owner=" + user() + ", user=" + (user() + 1));
    assertFalse(others.owns(file));
    assertThrows(IOException.class, () -> others.requireFolder(folder));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-rw----", "rw-r--rw-", "rw--w----", "rw-----w-"})
  void filesThatOthersCanWriteToAreRefused(String mode) throws IOException {
    mode(file, mode);
    refuses(own, file, "other users can write to it: mode=6");
    assertTrue(own.owns(file));
  }

  @Test
  void symbolicLinksAreNotFollowed() throws IOException {
    Path link = Files.createSymbolicLink(folder.resolve("link"), file);
    refuses(own, link, "it is a symbolic link");
    Path folders = Files.createSymbolicLink(folder.resolve("folders"), folder);
    assertThrows(IOException.class, () -> own.requireFolder(folders));
    Path nowhere = Files.createSymbolicLink(folder.resolve("nowhere"), folder.resolve("none"));
    refuses(own, nowhere, "it is a symbolic link");
  }

  @Test
  void largeFilesAreRefused() throws IOException {
    Files.writeString(file, "hello!");
    refuses(own, file, "it is too large: bytes=6, most=5");
  }

  @Test
  @Timeout(60)
  void pipesDoNotBlock() throws IOException, InterruptedException {
    Path pipe = folder.resolve("pipe");
    Process maker = new ProcessBuilder("mkfifo", "-m", "600", pipe.toString()).start();
    assertTrue(maker.waitFor(50, TimeUnit.SECONDS));
    refuses(own, pipe, "it is not a file");
    IOException e =
        assertThrows(IOException.class, () -> own.open(folder, 5, StandardOpenOption.READ));
    assertTrue(
        e.getMessage().startsWith("it is a folder, not a file: file=" + folder), e::toString);
  }

  @Test
  void missingFilesAreReported() {
    assertThrows(
        NoSuchFileException.class,
        () -> own.open(folder.resolve("none"), 5, StandardOpenOption.READ));
    assertFalse(own.owns(folder.resolve("none")));
  }

  @Test
  void foldersThatOthersCanWriteToAreRefused() throws IOException {
    mode(folder, "rwxr-x---");
    assertDoesNotThrow(() -> own.requireFolder(folder));
    mode(folder, "rwxrwx---");
    assertThrows(IOException.class, () -> own.requireFolder(folder));
    mode(folder, "rwx---rwx");
    assertThrows(IOException.class, () -> own.requireFolder(folder));
    assertThrows(IOException.class, () -> own.requireFolder(file));
  }
}

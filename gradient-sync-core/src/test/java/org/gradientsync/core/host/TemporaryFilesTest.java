package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files and folders that are deleted after a crash. */
class TemporaryFilesTest {
  private static final long SELF = ProcessHandle.current().pid();

  @TempDir Path folder;

  private static String mode(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  /** The id of a process that has ended. */
  static long ended() throws IOException, InterruptedException {
    Process process = new ProcessBuilder("true").start();
    process.waitFor();
    return process.pid();
  }

  private static Path left(Path made, long process) {
    String name = made.getFileName().toString();
    String other = name.replace("-" + SELF + "-", "-" + process + "-");
    assertNotEquals(name, other);
    return made.resolveSibling(other);
  }

  @Test
  void onlyThisUserHasAccess() throws IOException {
    TemporaryFiles files = new TemporaryFiles(folder, "test");
    Path made = files.createFolder();
    assertEquals("rwx------", mode(made));
    Path file = files.createFile(".log");
    assertEquals("rw-------", mode(file));
    assertTrue(
        file.getFileName().toString().matches("gradient-sync-test-.*-" + SELF + "-.*\\.log"));
    assertNotEquals(file, files.createFile(".log"));
    assertTrue(Files.exists(made), "a living process's folder was deleted");
    assertTrue(Files.exists(file), "a living process's file was deleted");
  }

  @Test
  void staleFilesAreDeleted() throws IOException, InterruptedException {
    TemporaryFiles files = new TemporaryFiles(folder, "test");
    long ended = ended();
    Path outside = Files.writeString(folder.resolve("outside"), "stays");
    Path left = Files.move(files.createFolder(), left(files.createFolder(), ended));
    Files.createDirectories(left.resolve("a/b"));
    Files.writeString(left.resolve("a/b/lib.so"), "x");
    Files.createSymbolicLink(left.resolve("a/link"), outside);
    Path file = files.createFile("");
    Path leftFile = Files.move(file, left(file, ended));
    Path link = files.createFile("");
    Files.delete(link);
    Path leftLink = Files.createSymbolicLink(left(link, ended), outside);
    Path other = new TemporaryFiles(folder, "other").createFile("");
    Path ofOtherPurpose = Files.move(other, left(other, ended));
    Path strange =
        Files.writeString(
            left.resolveSibling(left.getFileName() + "x").resolveSibling("no-1-x"), "");
    files.createFile("");
    assertFalse(Files.exists(left));
    assertFalse(Files.exists(leftFile));
    assertFalse(Files.exists(leftLink, LinkOption.NOFOLLOW_LINKS));
    assertEquals("stays", Files.readString(outside));
    assertTrue(Files.exists(ofOtherPurpose));
    assertTrue(Files.exists(strange));
  }

  @Test
  void otherUsersStaleFilesAreKept() throws IOException, InterruptedException {
    Path left = Files.writeString(folder.resolve(ProcessFileNames.of("p-", ended()) + "x"), "");
    int user = (int) Files.getAttribute(left, "unix:uid");
    ProcessFileNames.deleteStaleFiles(folder, "p-", OwnFiles.of(user + 1));
    assertTrue(Files.exists(left));
    ProcessFileNames.deleteStaleFiles(folder, "p-", OwnFiles.of(user));
    assertFalse(Files.exists(left));
  }

  @Test
  void foreignNamesDoNotStopTheCleanup() throws IOException, InterruptedException {
    String start = ProcessFileNames.of("p-", 1).replaceAll("1-$", "");
    for (String name :
        new String[] {
          "", "-", "-1-x", "x-x-x", "0-x", "99999999999999999999-x", "12", "12-", "1e3-"
        }) {
      Files.writeString(folder.resolve(start + name), "");
      assertFalse(ProcessFileNames.isOfEndedProcess("p-", start + name), name);
    }
    Path left = Files.writeString(folder.resolve(ProcessFileNames.of("p-", ended()) + "x"), "");
    ProcessFileNames.deleteStaleFiles(folder, "p-", OwnFiles.ofThisUser());
    assertFalse(Files.exists(left));
  }
}

package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;

/** The folder that JCuda unpacks its natives to. */
class NativeFolderTest {
  private static final String BEFORE = System.getProperty("java.io.tmpdir");

  @Test
  void isPrivateAndOnlyWhileLoading() {
    String during = NativeFolder.whileLoading(() -> System.getProperty("java.io.tmpdir"));
    assertNotEquals(BEFORE, during);
    assertEquals("rwx------", permissions(Path.of(during)));
    assertEquals(BEFORE, System.getProperty("java.io.tmpdir"));
    assertNotEquals(during, NativeFolder.whileLoading(() -> System.getProperty("java.io.tmpdir")));
  }

  @Test
  void isLeftWhenLoadingFails() {
    assertThrows(
        UnsatisfiedLinkError.class,
        () ->
            NativeFolder.whileLoading(
                () -> {
                  throw new UnsatisfiedLinkError("on purpose");
                }));
    assertEquals(BEFORE, System.getProperty("java.io.tmpdir"));
  }

  @Test
  void theReasonIsTheLineThatNamesTheLibrary() {
    assertEquals(
        "libx.so.12: cannot open",
        NativeFolder.reason(new UnsatisfiedLinkError("Error\n  libx.so.12: cannot open\nat")));
    assertEquals(
        "libj.so: libx.so.12: cannot open",
        NativeFolder.reason(
            new UnsatisfiedLinkError(
                "Error\njava.lang.UnsatisfiedLinkError: /tmp/a/libj.so: libx.so.12: cannot open")));
    assertEquals("Error", NativeFolder.reason(new UnsatisfiedLinkError("Error\nat")));
    assertEquals("java.lang.UnsatisfiedLinkError", NativeFolder.reason(new UnsatisfiedLinkError()));
  }

  private static String permissions(Path folder) {
    try {
      return PosixFilePermissions.toString(Files.getPosixFilePermissions(folder));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import jcuda.LibUtils;
import org.junit.jupiter.api.Test;

/** Tests the folder to which JCuda unpacks its natives. */
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
    LinkageError missing = new NoClassDefFoundError("jcuda/Pointer");
    missing.initCause(new ClassNotFoundException("jcuda.Pointer"));
    assertEquals(
        "a jar is not on the class path: class=jcuda.Pointer", NativeFolder.reason(missing));
    assertEquals(
        "reason=this JVM denies native access; start java with --enable-native-access=ALL-UNNAMED",
        NativeFolder.reason(
            new UnsatisfiedLinkError(
                "Error\njava.lang.IllegalCallerException: Illegal native access from: libj.so")));
    String noexec =
        NativeFolder.reason(
            new UnsatisfiedLinkError(
                "Error\njava.lang.UnsatisfiedLinkError: /t/libj.so: /t/libj.so: failed to map segment"));
    assertTrue(noexec.startsWith("reason=/t/libj.so: failed to map segment; start java"), noexec);
    assertEquals("java.lang.UnsatisfiedLinkError", NativeFolder.reason(new UnsatisfiedLinkError()));
  }

  @Test
  void whatAKilledProcessLeftIsDeletedByTheNext() throws IOException, InterruptedException {
    Process child =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Killed.class.getName())
            .redirectErrorStream(true)
            .start();
    String[] lines =
        new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8).split("\n");
    assertEquals(137, child.waitFor(), () -> String.join("\n", lines));
    Path left = Path.of(lines[lines.length - 1]);
    assertTrue(Files.exists(left.resolve("lib.so")), left::toString);
    NativeFolder.whileLoading(() -> 0);
    assertFalse(Files.exists(left), left::toString);
  }

  /** JCuda does not find natives in other modules. */
  @Test
  void nativesOnTheModulePathAreUnpacked() throws IOException, InterruptedException {
    String jars =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    Map<Boolean, String> paths =
        Arrays.stream(jars.split(File.pathSeparator))
            .collect(
                Collectors.partitioningBy(
                    path -> Path.of(path).getFileName().toString().matches("jcu(da|blas)-.*"),
                    Collectors.joining(File.pathSeparator)));
    Process child =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--module-path",
                paths.get(true),
                "--add-modules",
                "ALL-MODULE-PATH",
                "-cp",
                paths.get(false),
                Unpacked.class.getName())
            .redirectErrorStream(true)
            .start();
    String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, child.waitFor(), output);
    assertTrue(output.contains("libJCudaDriver-"), output);
    assertTrue(output.contains("libJCublas2-"), output);
    assertTrue(output.contains("libJNvrtc-"), output);
  }

  /** A process with JCuda on the module path. */
  static final class Unpacked {
    private Unpacked() {}

    public static void main(String[] args) {
      NativeFolder.whileLoading(
          () -> {
            assertTrue(LibUtils.class.getModule().isNamed());
            System.out.println(
                String.join("\n", new File(System.getProperty("java.io.tmpdir")).list()));
            return 0;
          });
    }
  }

  /** A process that is killed after it has unpacked its natives. */
  static final class Killed {
    private Killed() {}

    public static void main(String[] args) {
      String folder =
          NativeFolder.whileLoading(
              () -> {
                String own = System.getProperty("java.io.tmpdir");
                try {
                  Files.writeString(Path.of(own, "lib.so"), "x");
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
                return own;
              });
      System.out.println(folder);
      System.out.flush();
      Runtime.getRuntime().halt(137);
    }
  }

  private static String permissions(Path folder) {
    try {
      return PosixFilePermissions.toString(Files.getPosixFilePermissions(folder));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

package org.gradientsync.kernelcompiler;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which NVRTC is taken; its libraries here are ones that only have a version. */
class NvrtcTest {
  @TempDir Path folder;

  private Path library(String file, int major, int minor) throws Exception {
    Path source = folder.resolve("nvrtc.c");
    Files.writeString(
        source,
        "int nvrtcVersion(int* major, int* minor) { *major = %d; *minor = %d; return 0; }\n"
            .formatted(major, minor));
    Path library = folder.resolve(file);
    Files.createDirectories(library.getParent());
    try {
      Process gcc =
          new ProcessBuilder("gcc", "-shared", "-fPIC", "-o", "" + library, "" + source).start();
      assertEquals(0, gcc.waitFor());
    } catch (IOException e) {
      String reason = "SKIPPED: there is no gcc on the PATH";
      System.out.println(reason);
      Assumptions.abort(reason);
    }
    return library;
  }

  @Test
  void theFirstThatIsNewEnoughIsTaken() throws Exception {
    Path old = library("old/libnvrtc.so.11.8.89", 11, 8).getParent();
    Path fetched = library("fetched/libnvrtc.so.12.4.127", 12, 4).getParent();
    Path newer = library("newer/libnvrtc.so.13", 13, 0).getParent();
    assertEquals(new Version(12, 4), Nvrtc.find(null, List.of(old, fetched, newer)).version());
    assertEquals(new Version(13, 0), Nvrtc.find("", List.of(newer, fetched)).version());
    assertEquals(
        new Version(13, 0),
        Nvrtc.find(newer.resolve("libnvrtc.so.13").toString(), List.of(fetched)).version());
  }

  @Test
  void whereThereIsNoneOneSentenceSaysWhatToDo() throws Exception {
    BuildException e =
        assertThrows(BuildException.class, () -> Nvrtc.find(null, List.of(folder.resolve("no"))));
    assertEquals(
        "the build compiles CUDA kernels and needs NVRTC 12.4 or newer, which is not here: run"
            + " script/bootstrap, or set NVRTC_LIBRARY to a libnvrtc.so",
        e.getMessage());
    Path old = library("x/libnvrtc.so.11.2", 11, 8);
    Files.writeString(old.resolveSibling("libnvrtc.so.99"), "not a library");
    e = assertThrows(BuildException.class, () -> Nvrtc.find(null, List.of(old.getParent())));
    assertTrue(e.getMessage().contains("libnvrtc.so.11.2 is 11.8; "), e.getMessage());
    assertTrue(e.getMessage().contains("libnvrtc.so.99 does not load"), e.getMessage());
  }

  @Test
  void theOneThatIsNamedIsTakenOrRefused() throws Exception {
    String old = library("y/libnvrtc.so.12.3", 12, 3).toString();
    BuildException e = assertThrows(BuildException.class, () -> Nvrtc.find(old, List.of()));
    assertTrue(e.getMessage().contains(" is NVRTC 12.3, and the kernels need 12.4"), e.toString());
    String nowhere = folder.resolve("libnvrtc.so.13").toString();
    e = assertThrows(BuildException.class, () -> Nvrtc.find(nowhere, List.of()));
    assertTrue(e.getMessage().startsWith("NVRTC_LIBRARY=" + nowhere + " does not load"), "" + e);
  }
}

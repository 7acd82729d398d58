package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests where NCCL is found, and the texts if it is not. */
class NcclLibraryTest {
  private static final Settings DEFAULT = new Settings(Map.of());

  @TempDir Path folder;
  private final List<String> tried = new ArrayList<>();

  private NcclLibrary library(String there, int version, Map<String, String> environment) {
    return new NcclLibrary(
        name -> {
          tried.add(name);
          if (!name.equals(there)) {
            throw new UnsatisfiedLinkError(
                "Unable to load library '"
                    + name
                    + "':\n"
                    + name
                    + ": cannot open shared object file\nNative library ("
                    + name
                    + ") not found");
          }
          FakeNccl nccl = new FakeNccl();
          nccl.version = version;
          return nccl;
        },
        nccl -> {},
        () -> new NcclFiles(environment, List.of(folder.resolve("usr"))));
  }

  private static String message(NcclLibrary library, Settings settings) {
    return assertThrows(UnavailableException.class, () -> library.get(settings)).getMessage();
  }

  private static Path makeLibrary(Path packages) throws IOException {
    Path file = packages.resolve("nvidia/nccl/lib/libnccl.so.2");
    Files.createDirectories(file.getParent());
    return Files.createFile(file);
  }

  @Test
  void theSystemsComesFirst() throws IOException {
    makeLibrary(folder.resolve("usr/lib/python3/dist-packages"));
    NcclLibrary library = library("libnccl.so.2", 21800, Map.of());
    assertSame(library.get(DEFAULT), library.get(DEFAULT));
    assertEquals(List.of("libnccl.so.2"), tried);
  }

  @Test
  void thenTheOneBesidePyTorch() throws IOException {
    Path environment = folder.resolve("environment");
    Path bin = Files.createDirectories(folder.resolve("usr/bin"));
    Path python = Files.createFile(bin.resolve("python3.11"));
    assertTrue(python.toFile().setExecutable(true));
    Path link = Files.createDirectories(folder.resolve("link/bin"));
    Files.createSymbolicLink(link.resolve("python3"), python);
    Path inLink = makeLibrary(folder.resolve("link/lib/python3.11/site-packages"));
    Path inUsr = makeLibrary(folder.resolve("usr/lib/python3/dist-packages"));
    Path active = makeLibrary(environment.resolve("lib/python3.12/site-packages"));
    library(
            inUsr.toString(),
            22105,
            Map.of("VIRTUAL_ENV", environment.toString(), "PATH", "bin::/nowhere:" + link))
        .get(DEFAULT);
    assertEquals(
        List.of("libnccl.so.2", active.toString(), inLink.toString(), inUsr.toString()), tried);
  }

  @Test
  void theSettingIsTheOnlyOneTried() {
    Settings settings = new Settings(Map.of("nccl.library", "/opt/nccl.so"));
    library("/opt/nccl.so", 22105, Map.of()).get(settings);
    assertEquals(List.of("/opt/nccl.so"), tried);
    assertEquals(
        "this NCCL does not load: gradientsync.nccl.library=/opt/nccl.so,"
            + " reason=/opt/nccl.so: cannot open shared object file",
        message(library("libnccl.so.2", 22105, Map.of()), settings));
  }

  @Test
  void whatIsNotThereIsSaidInOneLine() {
    assertEquals(
        "there is no NCCL: library=libnccl.so.2, reason=libnccl.so.2: cannot open shared object"
            + " file; install it, or set gradientsync.nccl.library to its path",
        message(library("", 22105, Map.of()), DEFAULT));
  }

  @Test
  void whatIsTooOldIsRefused() {
    assertEquals(
        "this NCCL is too old: version=2.17.1, needed=2.18.0, library=/opt/libnccl.so.2",
        message(library("libnccl.so.2", 21701, Map.of()), DEFAULT));
    assertEquals(
        "this NCCL is too old: version=2.8.4, needed=2.18.0, library=/opt/libnccl.so.2",
        message(library("libnccl.so.2", 2804, Map.of()), DEFAULT));
  }

  @Test
  void aProcessHasOne() {
    NcclLibrary library = library("libnccl.so.2", 22105, Map.of());
    library.get(DEFAULT);
    assertEquals(
        "this process has loaded another NCCL: gradientsync.nccl.library=/opt/other.so,"
            + " loaded=/opt/libnccl.so.2",
        message(library, new Settings(Map.of("nccl.library", "/opt/other.so"))));
  }

  @Test
  void aFileThatIsNoLibraryIsNamed() throws IOException {
    Path file = Files.writeString(folder.resolve("libnccl.so.2"), "text");
    String text =
        message(NcclLibrary.ofProcess(), new Settings(Map.of("nccl.library", file.toString())));
    assertTrue(
        text.startsWith("this NCCL does not load: gradientsync.nccl.library=" + file + ", reason="),
        text);
    assertEquals(1, text.lines().count(), text);
  }
}

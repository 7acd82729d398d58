package org.gradientsync.mpi.direct;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests where a libmpi is looked for, and which one. */
class LibrarySearchTest {
  private static final Map<String, String> OPEN_MPI = Map.of("OMPI_COMM_WORLD_SIZE", "2");
  private static final Map<String, String> MPICH = Map.of("PMI_SIZE", "2");

  @TempDir Path folder;

  @Test
  void eachLauncherHasItsOwnLibraries() {
    assertEquals(
        List.of("libmpi.so.40", "libmpi_abi.so.1"), search(OPEN_MPI, List.of(), "").names());
    assertEquals(
        List.of("libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"),
        search(MPICH, List.of(), "").names());
    assertEquals(
        List.of("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"),
        search(Map.of("PMIX_RANK", "0"), List.of(), "").names());
  }

  @Test
  void slurmStartsRanksOfAnyMpi() {
    Map<String, String> slurm = Map.of("PMI_SIZE", "2", "SLURM_PROCID", "0");
    assertEquals("", search(slurm, List.of(Path.of("/usr/sbin/slurmstepd")), "").launcher());
    Path proxy = Path.of("/usr/bin/hydra_pmi_proxy");
    assertEquals("MPICH", search(slurm, List.of(proxy), "").launcher());
  }

  @ParameterizedTest
  @ValueSource(strings = {"orterun", "prte"})
  void theLaunchersInstallationComesFirst(String program) throws Exception {
    Path launcher = file("a/bin/" + program);
    Path own = file("a/lib/libmpi.so.40");
    file("a/lib/libmpi.so.12"); // of another kind
    Path named = file("b/libmpi.so.40");
    LibrarySearch search =
        search(OPEN_MPI, List.of(Path.of("/bin/sh"), launcher), folder.resolve("b").toString());
    assertEquals(
        List.of(own.toString(), named.toString(), "libmpi.so.40", "libmpi_abi.so.1"),
        List.copyOf(search.candidates()));
  }

  @Test
  void theLauncherOnThePathIsNext() throws Exception {
    Path launcher = file("a/bin/mpirun");
    assertEquals(true, launcher.toFile().setExecutable(true));
    Path own = file("a/lib64/libmpich.so.12");
    Map<String, String> environment =
        Map.of("PMI_SIZE", "2", "PATH", "/nowhere:" + launcher.getParent());
    assertEquals(own.toString(), search(environment, List.of(), "").candidates().iterator().next());
  }

  private Path file(String name) throws Exception {
    Path file = folder.toRealPath().resolve(name);
    Files.createDirectories(file.getParent());
    return Files.createFile(file);
  }

  private static LibrarySearch search(
      Map<String, String> environment, List<Path> programs, String libraryPath) {
    return new LibrarySearch(environment, programs, libraryPath);
  }
}

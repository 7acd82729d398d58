package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests commands, environments and settings, without starting anything. */
class LaunchPlanTest {
  private static final Path JAVA = Path.of("/jdk/bin/java");
  private static final MpiInstallation OPEN_MPI = mpi(LauncherKind.OPEN_MPI, "4.1.4");
  private static final MpiInstallation HYDRA = mpi(LauncherKind.HYDRA, "4.0.2");
  private static final MpiInstallation SLURM = mpi(LauncherKind.SLURM, "22.05.8");

  @Test
  void openMpiHasAllSettings() {
    LaunchPlan plan = plan(request(null, null, false), OPEN_MPI, machine(25, Map.of()));
    assertEquals(
        "/mpi/run -np 4 --bind-to none --tag-output -x UCX_ERROR_SIGNALS -x LD_LIBRARY_PATH"
            + " -x GRADIENTSYNC_RUN_RANKS -x TOKEN env /jdk/bin/java"
            + " --enable-native-access=ALL-UNNAMED -XX:MaxDirectMemorySize=1000k -Dmine"
            + " -cp a:b/* my.Main --np 1",
        String.join(" ", plan.command()));
    assertEquals(
        Map.of(
            "UCX_ERROR_SIGNALS",
            "",
            "LD_LIBRARY_PATH",
            "/mpi/lib",
            "OMPI_MCA_btl",
            "^tcp,ofi",
            "GRADIENTSYNC_RUN_RANKS",
            "4"),
        plan.environment());
    String text = plan.text();
    assertTrue(text.startsWith("launcher: /mpi/run (Open MPI 4.1.4)\nsettings:\n"), text);
    for (Setting setting : plan.settings()) {
      assertTrue(text.contains("\n  " + setting.text() + "   # " + setting.reason()), text);
    }
    assertEquals(6, plan.settings().size());
    assertTrue(text.contains("\ncommand:\n  UCX_ERROR_SIGNALS= LD_LIBRARY_PATH=/mpi/lib "), text);
    assertTrue(text.endsWith(" -cp 'a:b/*' my.Main --np 1"), text);
  }

  @Test
  void whatTheUserHasSetStays() {
    Map<String, String> environment =
        Map.of(
            "UCX_ERROR_SIGNALS",
            "SIGILL",
            "LD_LIBRARY_PATH",
            "/mine",
            "OMPI_MCA_btl",
            "self,tcp",
            "JDK_JAVA_OPTIONS",
            "-XX:MaxDirectMemorySize=6m");
    LaunchPlan plan = plan(request(null, null, false), OPEN_MPI, machine(17, environment));
    assertEquals(
        Map.of(
            "UCX_ERROR_SIGNALS",
            "SIGILL",
            "JDK_JAVA_OPTIONS",
            "-XX:MaxDirectMemorySize=6m",
            "LD_LIBRARY_PATH",
            "/mpi/lib:/mine",
            "GRADIENTSYNC_RUN_RANKS",
            "4"),
        plan.environment());
    String command = String.join(" ", plan.command());
    assertFalse(command.contains("MaxDirect") || command.contains("native-access"), command);
  }

  @ParameterizedTest
  @CsvSource({
    "'', '', true",
    "a:4, '', true", // all on one host
    "'a:2,b:2', '', false",
    "'', nodes, false",
    "SLURM_NNODES=2, '', false",
    "SLURM_NNODES=1, '', true",
    "PBS_NODEFILE=x, '', false"
  })
  void jobsOfOneNodeNeedNoNetwork(String hosts, String file, boolean quiet) {
    boolean variable = hosts.contains("=");
    Map<String, String> environment =
        variable ? Map.of(hosts.split("=")[0], hosts.split("=")[1]) : Map.of();
    Hosts places = hosts.isEmpty() || variable ? null : Hosts.parse(hosts);
    JobRequest request = request(places, file.isEmpty() ? null : Path.of(file), false);
    LaunchPlan plan = plan(request, OPEN_MPI, machine(17, environment));
    assertEquals(quiet, plan.environment().containsKey("OMPI_MCA_btl"), plan.text());
  }

  @ParameterizedTest
  @CsvSource({"0, false", "20971519, false", "20971520, true"})
  void ranksThatCannotShareMemoryNeedTheNetwork(long free, boolean quiet) {
    Machine machine = new Machine(Map.of(), JAVA, 17, 1000, free);
    LaunchPlan plan = plan(request(null, null, false), OPEN_MPI, machine);
    assertEquals(quiet, plan.environment().containsKey("OMPI_MCA_btl"), plan.text());
    assertEquals(!quiet, plan.text().contains("/dev/shm has too little room, free=" + free));
  }

  /** The program is a link, as Debian's is. */
  @ParameterizedTest
  @ValueSource(strings = {"openmpi-default-hostfile", "prte-default-hostfile"})
  void hostsThatOpenMpiTakesByItselfMayBeSeveralNodes(String file, @TempDir Path folder)
      throws IOException {
    Path program =
        Files.createFile(Files.createDirectories(folder.resolve("mpi/bin")).resolve("mpirun"));
    Path link = Files.createSymbolicLink(folder.resolve("mpirun"), program);
    MpiInstallation mpi = new MpiInstallation(link, LauncherKind.OPEN_MPI, "4.1.4");
    Path hosts = Files.createDirectories(folder.resolve("mpi/etc")).resolve(file);
    for (String text : List.of("# none", "# two\nnode1\nnode2")) {
      Files.writeString(hosts, text);
      LaunchPlan plan = plan(request(null, null, false), mpi, machine(17, Map.of()));
      assertEquals(
          text.equals("# none"), plan.environment().containsKey("OMPI_MCA_btl"), plan.text());
    }
  }

  @Test
  void eachLauncherHasItsOwnWords() {
    Hosts hosts = Hosts.parse("a:2,b:2");
    JobRequest onHosts = request(hosts, null, true);
    JobRequest inFile = request(null, Path.of("/nodes"), false);
    Machine machine = machine(17, Map.of());
    assertStarts(
        "-np 4 --bind-to none --tag-output --oversubscribe --host a:2,b:2 -x", onHosts, OPEN_MPI);
    assertStarts("-np 4 --bind-to none --tag-output --hostfile /nodes -x", inFile, OPEN_MPI);
    assertStarts(
        "-np 4 --bind-to none --output tag --map-by :OVERSUBSCRIBE --host a:2,b:2 -x",
        onHosts,
        mpi(LauncherKind.OPEN_MPI, "5.0.7"));
    assertStarts(
        "-np 4 -prepend-pattern <gradient-sync rank %r> -hosts a:2,b:2 /jdk/bin/java",
        onHosts, HYDRA);
    assertStarts(
        "-np 4 -prepend-pattern <gradient-sync rank %r> -f /nodes /jdk/bin/java", inFile, HYDRA);
    String slurm = "-n 4 --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 --label ";
    assertStarts(
        slurm + "--overcommit --nodes=2 --distribution=arbitrary --nodelist=a,a,b,b /jdk/bin/java",
        onHosts,
        SLURM);
    assertStarts(slurm + "--distribution=arbitrary --nodelist=/nodes /jdk/bin/java", inFile, SLURM);
    Machine chosen = machine(17, Map.of("SLURM_MPI_TYPE", "pmi2"));
    assertFalse(plan(inFile, SLURM, chosen).command().contains("--mpi=pmix"));
    // mpi.jar is Open MPI's, so ranks of MPICH's launcher leave it alone
    assertTrue(
        plan(inFile, HYDRA, machine).command().contains("-Dgradientsync.mpi.binding=direct"));
  }

  @Test
  void ranksDoNotGetWhatTorchrunHasSet() {
    Machine machine =
        machine(17, Map.of("TORCHELASTIC_RUN_ID", "4711", "WORLD_SIZE", "8", "TOKEN", "mine"));
    JobRequest request = request(null, null, false);
    for (MpiInstallation mpi : List.of(OPEN_MPI, HYDRA, SLURM)) {
      LaunchPlan plan = plan(request, mpi, machine);
      String command = String.join(" ", plan.command());
      assertTrue(
          command.contains(" env -u TORCHELASTIC_RUN_ID -u WORLD_SIZE /jdk/bin/java "), command);
      assertTrue(plan.text().contains("without TORCHELASTIC_RUN_ID, WORLD_SIZE   # "), plan.text());
    }
    JobRequest forwarding =
        new JobRequest(
            4, null, null, false, true, List.of("WORLD_SIZE"), request.program(), List.of());
    String command = String.join(" ", plan(forwarding, OPEN_MPI, machine).command());
    assertTrue(command.contains(" env -u TORCHELASTIC_RUN_ID /jdk/bin/java "), command);
  }

  @Test
  void ranksAsThreadsAreOneJvm() {
    LaunchPlan plan =
        LaunchPlan.threads(request(null, null, false), machine(17, Map.of()), "/tools.jar");
    assertEquals(
        "/jdk/bin/java -XX:MaxDirectMemorySize=1000k -Dmine -cp a:b/*:/tools.jar"
            + " org.gradientsync.tools.run.RanksAsThreads 4 my.Main --np 1",
        String.join(" ", plan.command()));
    assertEquals(Map.of(), plan.environment());
  }

  private static void assertStarts(String words, JobRequest request, MpiInstallation mpi) {
    String command = String.join(" ", plan(request, mpi, machine(17, Map.of())).command());
    assertTrue(command.startsWith("/mpi/run " + words), command);
  }

  private static LaunchPlan plan(JobRequest request, MpiInstallation mpi, Machine machine) {
    return LaunchPlan.processes(request, mpi, machine, Optional.of(Path.of("/mpi/lib")));
  }

  private static MpiInstallation mpi(LauncherKind kind, String version) {
    return new MpiInstallation(Path.of("/mpi/run"), kind, version);
  }

  private static Machine machine(int java, Map<String, String> environment) {
    return new Machine(environment, JAVA, java, 1000, 1L << 30);
  }

  private static JobRequest request(Hosts hosts, Path file, boolean oversubscribed) {
    ProgramFiles program =
        new ProgramFiles(
            "a:b/*",
            false,
            "my.Main",
            List.of("--np", "1"),
            new MpiJar("/mpi/lib/mpi.jar", Set.of()));
    return new JobRequest(
        4, hosts, file, oversubscribed, true, List.of("TOKEN"), program, List.of("-Dmine"));
  }
}

package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.gradientsync.RankLostException;
import org.gradientsync.tools.GradientSyncCommand;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs jobs with the launchers that are installed here. */
class RunIT {
  private static final Path SCRIPT =
      Path.of(System.getProperty("basedir", ""), "bin/gradient-sync").toAbsolutePath();
  private static final Path CLUSTERS =
      Path.of("../gradient-sync-mpi/src/test/resources/org/gradientsync/mpi").toAbsolutePath();
  private static final int SECONDS = 120;

  @TempDir Path folder;
  private boolean appends;
  private int ranks = 2;

  @Test
  void openMpi() throws Exception {
    InstalledLauncher.require("mpirun");
    aRankFails(List.of(), List.of("--oversubscribe"));
  }

  @Test
  @Tag("mpich")
  void mpich() throws Exception {
    InstalledLauncher.require("mpiexec.hydra");
    aRankFails(List.of(), List.of("--launcher", "mpiexec.hydra"));
  }

  @Test
  @Tag("slurm")
  void slurm() throws Exception {
    InstalledLauncher.require("srun");
    List<String> below = List.of("sh", CLUSTERS + "/slurm.sh", folder.resolve("slurm").toString());
    aRankFails(below, List.of("--launcher", "srun", "--oversubscribe"));
  }

  /** The nodes have networks of their own, and get no environment but the launcher's. */
  @Test
  @Tag("links")
  void openMpiOnTwoNodes() throws Exception {
    InstalledLauncher.require("mpirun");
    Process probe = new ProcessBuilder("sh", CLUSTERS + "/links.sh", "probe").start();
    assumeTrue(probe.waitFor() == 0, "no shaped links can be made here");
    Path nodes = Files.createDirectory(folder.resolve("nodes"));
    List<String> below =
        List.of(
            "env",
            "--unset=OMPI_MCA_btl", // the command is to leave TCP on
            "OMPI_MCA_plm=rsh",
            "OMPI_MCA_plm_rsh_agent=" + nodes.resolve("agent"),
            "OMPI_MCA_oob_tcp_if_include=10.77.0.0/24",
            "OMPI_MCA_btl_tcp_if_include=10.77.0.0/24",
            "OMPI_MCA_pml=ob1",
            "sh",
            CLUSTERS + "/links.sh",
            nodes.toString(),
            "2",
            "1gbit",
            "0");
    aRankFails(below, List.of("--hosts", "node1:1,node2:1"));
    List<String> out = Files.readAllLines(folder.resolve("out"));
    assertTrue(out.containsAll(List.of("[0] runs on node1", "[1] runs on node2")), out::toString);
  }

  /** A rank that fails by itself ends the job with its code, and does not make it start again. */
  private void aRankFails(List<String> below, List<String> options) throws Exception {
    List<String> all = new ArrayList<>(options);
    all.addAll(List.of("--restarts=3", "-x", "OF_THE_USER=is here"));
    Process process = start(below, all, "fail");
    String text = end(process);
    List<String> out = Files.readAllLines(folder.resolve("out"));
    assertEquals(7, process.exitValue(), text);
    for (int rank = 0; rank < 2; rank++) {
      String prefix = "[" + rank + "] ";
      String says = prefix + "says mpi on " + RankProgram.cpus() + " CPUs, [] [is here]";
      assertTrue(out.contains(prefix + "rank " + rank + " of 2 averages 0.5"), text);
      assertTrue(out.contains(says), text);
      assertTrue(errors().contains(prefix + "complains: fail\n"), text);
    }
    assertTrue(!errors().contains("attempt"), text);
  }

  @Test
  void aTemporaryFolderThatCannotBeWrittenIsNamed() throws Exception {
    String nowhere = "java.io.tmpdir=" + folder.resolve("nowhere");
    List<String> below = List.of("env", "JAVA_TOOL_OPTIONS=-D" + nowhere);
    String launcher = fakeMpirun("").toString();
    for (List<String> options : List.of(List.of("--min-np=1"), List.of("--launcher", launcher))) {
      Process process = start(below, options, "nothing");
      String text = end(process);
      assertEquals(3, process.exitValue(), text);
      assertTrue(
          errors().lines().anyMatch(line -> line.matches("gradient-sync run: .*no temporary .*")),
          text);
      assertTrue(errors().contains(nowhere + "; free space there, or set JAVA_TOOL"), text);
      assertFalse(errors().contains("\tat "), text);
    }
  }

  @Test
  void aLauncherThatGivesEachProcessAWorldOfOne() throws Exception {
    Path launcher =
        fakeMpirun(
            "while [ \"$1\" != env ]; do shift; done;"
                + " \"$@\" & \"$@\"; code=$?; wait; exit $code");
    Process process = start(List.of(), List.of("--launcher", launcher.toString()), "nothing");
    String text = end(process);
    assertEquals(1, process.exitValue(), text);
    String alone = "gradient-sync run started 2 processes, but this one finds itself alone: ";
    assertEquals(3, text.split(alone, -1).length, text);
  }

  @Test
  void threads() throws Exception {
    Process process = start(List.of(), List.of("--threads"), "nothing");
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    assertTrue(text.contains("says local on " + RankProgram.cpus()), text);
    assertTrue(text.contains("rank 1 of 2 averages 0.5") || text.contains("rank 1rank 0"), text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--threads", "--no-prefix"})
  void linesOfTheProgramAreNotTheLaunchers(String option) throws Exception {
    InstalledLauncher.require("mpirun");
    Process process = start(List.of(), List.of(option, "--oversubscribe"), "mislead");
    String text = end(process);
    assertEquals(1, process.exitValue(), text);
    assertTrue(errors().contains("\nThere are not enough slots available\n"), text);
    assertTrue(!errors().contains("gradient-sync run: "), text);
  }

  /** A terminal and many schedulers signal the whole process group. */
  @ParameterizedTest
  @CsvSource({
    "INT, 130, false",
    "INT, 130, true",
    "TERM, 143, true",
    "HUP, 129, true",
    "KILL, 137, false",
    "USR1, 138, false"
  })
  void aSignalEndsAllRanks(String signal, int code, boolean group) throws Exception {
    InstalledLauncher.require("mpirun");
    aSignalEndsAllRanks(signal, code, group, List.of("--oversubscribe"));
  }

  @ParameterizedTest
  @CsvSource({"INT, 130, true", "TERM, 143, false", "KILL, 137, false", "USR1, 138, false"})
  void aSignalEndsAllRanksOverTcp(String signal, int code, boolean group) throws Exception {
    aSignalEndsAllRanks(signal, code, group, List.of("--launcher", "tcp"));
  }

  @Test
  void overTcp() throws Exception {
    Process process =
        start(
            List.of(
                "env",
                "GRADIENTSYNC_SECRET= ", // the launcher makes one
                "OMPI_COMM_WORLD_SIZE=1", // of an mpirun that starts the launcher
                "PMIX_RANK=0",
                "JAVA_OPTS=-XX:TieredStopAtLevel=1",
                "JAVA_TOOL_OPTIONS=-XX:+UseParallelGC -Xms200m -Xmx200m"),
            List.of("--launcher", "tcp", "--restarts=3", "-x", "OF_THE_USER=1"),
            "fail");
    String text = end(process);
    List<String> out = Files.readAllLines(folder.resolve("out"));
    assertEquals(7, process.exitValue(), text);
    for (int rank = 0; rank < 2; rank++) {
      String prefix = "[" + rank + "] ";
      assertTrue(out.contains(prefix + "rank " + rank + " of 2 averages 0.5"), text);
      String cpus = " on " + RankProgram.cpus() + " CPUs, [null] [1]";
      assertTrue(out.contains(prefix + "says tcp" + cpus), text);
      assertTrue(errors().contains(prefix + "complains: fail\n"), text);
    }
    assertTrue(!errors().contains("attempt"), text);
  }

  @Test
  void oneCommandOnEachNode() throws Exception {
    appends = true; // all write to the same files
    List<Process> commands = new ArrayList<>();
    String master = "127.0.0.1:" + RanksAsProcesses.freePort();
    for (String node : List.of("0", "1")) {
      commands.add(
          start(
              List.of("env", "GRADIENTSYNC_SECRET=of this test"),
              List.of("--nnodes", "2", "--node-rank", node, "--master", master),
              "nothing"));
    }
    for (Process command : commands) {
      String text = end(command);
      assertEquals(0, command.exitValue(), text);
    }
    List<String> out = Files.readAllLines(folder.resolve("out"));
    for (int rank = 0; rank < 2; rank++) {
      assertTrue(out.contains("[" + rank + "] rank " + rank + " of 2 averages 0.5"), "" + out);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 4", "4, 2"})
  void otherNumbersOfRanksOnTwoNodesAreNamedOnBoth(int first, int second) throws Exception {
    String master = "127.0.0.1:" + RanksAsProcesses.freePort();
    List<Process> commands = new ArrayList<>();
    Path all = folder;
    for (int node = 0; node < 2; node++) {
      ranks = node == 0 ? first : second;
      folder = Files.createDirectory(all.resolve("node" + node));
      commands.add(
          start(
              List.of("env", "GRADIENTSYNC_SECRET=of this test"),
              List.of("--nnodes", "2", "--node-rank", "" + node, "--master", master),
              "nothing"));
    }
    for (int node = 0; node < 2; node++) {
      folder = all.resolve("node" + node);
      String text = end(commands.get(node));
      assertEquals(1, commands.get(node).exitValue(), text);
      String says = "different numbers of ranks: rank 0 expects %s, rank ".formatted(first);
      assertTrue(text.contains(says), text);
    }
  }

  private List<String> belowSsh(String connects) throws IOException {
    return List.of(
        "env",
        "PATH=" + OneMachine.ssh(folder, connects) + ":" + System.getenv("PATH"),
        "GRADIENTSYNC_SECRET=of this test");
  }

  private List<String> belowSsh() throws IOException {
    return belowSsh(OneMachine.HERE);
  }

  private static final List<String> OVER_SSH =
      List.of("--launcher", "tcp", "--hosts", "127.0.0.1,127.0.0.2");

  @Test
  void overSsh() throws Exception {
    List<String> options = new ArrayList<>(OVER_SSH);
    options.addAll(List.of("--restarts=3", "-x", "OF_THE_USER=is here"));
    options.addAll(List.of("-x", "GRADIENTSYNC_SECRET=of -x")); // it says more than the environment
    Process process = start(belowSsh(), options, "fail");
    String text = end(process);
    assertEquals(7, process.exitValue(), text);
    List<String> hosts = Files.readAllLines(folder.resolve("hosts"));
    assertEquals(List.of("127.0.0.1", "127.0.0.2"), hosts.stream().sorted().toList());
    List<String> out = Files.readAllLines(folder.resolve("out"));
    for (int rank = 0; rank < 2; rank++) {
      String prefix = "[" + rank + "] ";
      assertTrue(out.contains(prefix + "rank " + rank + " of 2 averages 0.5"), text);
      String cpus = " on " + RankProgram.cpus() + " CPUs, [null] [is here]";
      assertTrue(out.contains(prefix + "says tcp" + cpus), text);
      assertTrue(out.contains(prefix + "has a secret of 5 characters"), text);
      assertTrue(errors().contains(prefix + "complains: fail\n"), text);
    }
    assertTrue(!errors().contains("attempt"), text);
  }

  @Test
  void aRankThatIsLostInCreateLetsAllBeginAgain() throws Exception {
    List<String> below = List.of("env", "LOST_IN_CREATE=" + folder.resolve("lost"));
    Process process = start(below, List.of("--min-np=1"), "lost-in-create");
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    assertTrue(text.contains("[1] rank 1 of 2 averages 0.5\n"), text);
    for (String lost : List.of("rank 0 was lost (exit code 75", "rank 1 was lost (exit code 137")) {
      assertTrue(errors().contains(lost), text);
    }
    assertFalse(errors().contains("to join the others"), text);
  }

  /** Its process ends after the last one that has trained, which was killed. */
  @Test
  void aRankThatHasLeftHasNotFinishedTheJob() throws Exception {
    Process process = start(List.of(), List.of("--launcher=tcp", "--min-np=1"), "elastic-left");
    String text = end(process);
    assertEquals(137, process.exitValue(), text);
    assertFalse(errors().contains("to join the others"), text);
  }

  /** All end with the code of a lost rank, and nobody waits once more. */
  @Test
  void tooFewRanksOfSeveralHostsWaitOnce() throws Exception {
    List<String> options = new ArrayList<>(OVER_SSH);
    options.addAll(List.of("--min-np=2", "--wait=2"));
    Process process = start(belowSsh(), options, "elastic-too-few");
    String text = end(process);
    assertEquals(RankLostException.EXIT_CODE, process.exitValue(), text);
    assertTrue(errors().contains("gradient-sync: rank 1 was lost (exit code 137"), text);
    assertFalse(errors().contains("gradient-sync: rank 0 was lost"), text);
  }

  @Test
  void ranksJoinWhenTheFirstHostWasLost() throws Exception {
    ranks = 3;
    List<String> options = List.of("--min-np=1", "--hosts=127.0.0.1,127.0.0.2:2");
    Process process = start(belowSsh(), options, "elastic-first-host");
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    String why = " to join the others\n";
    assertTrue(
        errors().contains("host 127.0.0.1 was lost; its ranks are started on 127.0.0.2" + why),
        text);
    assertTrue(
        errors().contains("rank 2 was lost (exit code 137, signal 9); it is started again" + why),
        text);
    assertEquals(3, text.lines().filter(line -> line.contains("has saved")).count(), text);
  }

  @Test
  void aHostThatCannotBeReachedIsNamed() throws Exception {
    List<String> below = belowSsh("echo Permission denied >&2; exit 255\n");
    Process process = start(below, OVER_SSH, "nothing");
    String text = end(process);
    assertEquals(255, process.exitValue(), text);
    assertTrue(errors().contains("127.0.0.2: Permission denied\n"), text);
    assertTrue(errors().contains("try: ssh 127.0.0.1 true\n"), text);
  }

  /** As an account that may run one command only. */
  @ParameterizedTest
  @ValueSource(strings = {"--restarts=3", "--min-np=1"})
  void aHostThatStartsNothingEndsTheJob(String option) throws Exception {
    List<String> below =
        belowSsh("[ $1 = 127.0.0.1 ] || { echo not here; exit 0; }\n" + OneMachine.HERE);
    List<String> options = new ArrayList<>(OVER_SSH);
    options.add(option);
    Process process = start(below, options, "nothing");
    String text = end(process);
    assertEquals(3, process.exitValue(), text);
    assertTrue(text.contains("127.0.0.2: not here\n"), text);
    assertTrue(
        errors().contains("ssh ended with 0, but has not started the ranks there: host=127.0.0.2;"),
        text);
    assertFalse(errors().contains("attempt"), text);
  }

  @Test
  void aHostThatIsLostLosesItsRanks() throws Exception {
    List<String> below = belowSsh("shift\nenv -i PATH=\"$PATH\" sh -c \"$*\"\nexit 255\n");
    Process process = start(below, OVER_SSH, "nothing");
    String text = end(process);
    assertEquals(RankLostException.EXIT_CODE, process.exitValue(), text);
    assertTrue(errors().contains("with --restarts N the job would be started again"), text);
  }

  @ParameterizedTest
  @CsvSource({"INT, 130, true", "TERM, 143, false", "KILL, 137, false", "USR1, 138, false"})
  void aSignalEndsAllRanksOverSsh(String signal, int code, boolean group) throws Exception {
    aSignalEndsAllRanks(belowSsh(), signal, code, group, OVER_SSH);
  }

  /** The nodes have networks of their own, and get no environment but the launcher's. */
  @Test
  @Tag("links")
  void overSshOnTwoNodes() throws Exception {
    Process probe = new ProcessBuilder("sh", CLUSTERS + "/links.sh", "probe").start();
    assumeTrue(probe.waitFor() == 0, "no shaped links can be made here");
    Path nodes = Files.createDirectory(folder.resolve("nodes"));
    List<String> below =
        new ArrayList<>(belowSsh("exec '" + nodes.resolve("agent") + "' \"$@\"\n"));
    below.addAll(List.of("sh", CLUSTERS + "/links.sh", nodes.toString(), "2", "1gbit", "0"));
    Process process =
        start(below, List.of("--launcher", "tcp", "--hosts", "node1,node2"), "nothing");
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    List<String> out = Files.readAllLines(folder.resolve("out"));
    for (int rank = 0; rank < 2; rank++) {
      assertTrue(out.contains("[" + rank + "] rank " + rank + " of 2 averages 0.5"), text);
      assertTrue(out.contains("[" + rank + "] runs on node" + (rank + 1)), text);
    }
  }

  private void aSignalEndsAllRanks(String signal, int code, boolean group, List<String> options)
      throws Exception {
    aSignalEndsAllRanks(List.of("env"), signal, code, group, options);
  }

  private void aSignalEndsAllRanks(
      List<String> env, String signal, int code, boolean group, List<String> options)
      throws Exception {
    Path files = Files.createDirectory(folder.resolve("files"));
    List<String> below = new ArrayList<>(List.of("setsid"));
    below.addAll(env);
    below.addAll(
        List.of(
            "env",
            "--default-signal=INT,HUP", // what a shell or nohup starts in the background ignores
            // them
            "TMPDIR=" + files,
            "OMPI_MCA_btl_vader_backing_directory=" + files,
            "OMPI_MCA_btl_sm_backing_directory=" + files));
    Process process = start(below, options, "wait");
    while (process.isAlive() && errors().lines().filter(l -> l.contains("complains")).count() < 2) {
      Thread.sleep(20);
    }
    assertTrue(process.isAlive(), errors());
    List<ProcessHandle> started = process.descendants().toList();
    for (ProcessHandle one : started) { // no list of processes has the secret
      String line = Files.readString(Path.of("/proc/" + one.pid() + "/cmdline"));
      assertFalse(line.contains("of this test"), line);
    }
    kill(signal, (group ? "-" : "") + process.pid());
    String text = end(process);
    assertEquals(code, process.exitValue(), text);
    assertTrue(started.size() >= 3, text);
    for (ProcessHandle one : started) {
      one.onExit().get(10, TimeUnit.SECONDS);
    }
    try (Stream<Path> left = Files.walk(files)) {
      assertEquals(List.of(files), left.filter(file -> !isOfJvm(file)).toList(), text);
    }
    assertTrue(!text.contains("attempt"), text);
  }

  private static boolean isOfJvm(Path file) {
    return file.toString().contains("hsperfdata");
  }

  private static void kill(String signal, String target) throws Exception {
    assertEquals(
        0, new ProcessBuilder("kill", "-" + signal, "--", target).start().waitFor(), target);
  }

  @ParameterizedTest
  @ValueSource(strings = {"mpi", "tcp"})
  void ranksCanSaveAfterASignalAndSaySo(String launcher) throws Exception {
    List<String> options = List.of("--launcher", "tcp");
    String what = "save-long"; // for longer than other ranks wait for one that has failed
    if (launcher.equals("mpi")) {
      InstalledLauncher.require("mpirun");
      options = List.of("--oversubscribe");
      what = "save";
    }
    Process process = start(List.of(), options, what);
    while (process.isAlive() && errors().lines().filter(l -> l.contains("complains")).count() < 2) {
      Thread.sleep(20);
    }
    Thread.sleep(200); // the hook is there
    kill("TERM", Long.toString(process.pid()));
    String text = end(process);
    assertEquals(143, process.exitValue(), text);
    assertEquals(2, text.lines().filter(line -> line.contains("has saved")).count(), text);
  }

  @ParameterizedTest
  @CsvSource({"false, false", "true, false", "false, true"})
  void ranksThatStopTogetherAfterASignalEndWell(boolean overSsh, boolean sentTwice)
      throws Exception {
    List<String> below = new ArrayList<>(overSsh ? belowSsh() : List.of("env"));
    below.add("JAVA_OPTS=-Dgradientsync.stop.on.signal=true");
    List<String> options = new ArrayList<>(overSsh ? OVER_SSH : List.of("--launcher", "tcp"));
    options.add("--restarts=3");
    Process process = start(below, options, "stop");
    while (process.isAlive() && errors().lines().filter(l -> l.contains("complains")).count() < 2) {
      Thread.sleep(20);
    }
    kill("TERM", Long.toString(process.pid()));
    if (sentTwice) { // as timeout does, to its child and to its process group
      Thread.sleep(50); // the ranks take longer to save
      kill("TERM", Long.toString(process.pid()));
    }
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    assertEquals(2, text.lines().filter(line -> line.contains("has saved")).count(), text);
  }

  @Test
  void theLauncherGetsTheSignalsOfTheUser() throws Exception {
    Path launcher =
        fakeMpirun(
            "trap 'echo USR1' USR1; trap 'echo USR2; exit 5' USR2; echo started;"
                + " for i in $(seq 1200); do sleep 0.05; done");
    Process process = start(List.of(), List.of("--launcher", launcher.toString()), "nothing");
    for (String[] step : new String[][] {{"started", "USR1"}, {"USR1", "USR2"}}) {
      while (process.isAlive() && !Files.readString(folder.resolve("out")).contains(step[0])) {
        Thread.sleep(20);
      }
      kill(step[1], Long.toString(process.pid()));
    }
    String text = end(process);
    assertEquals("started\nUSR1\nUSR2\n", text);
    assertEquals(5, process.exitValue());
  }

  /** A scheduler ends all processes of a job, in any order. */
  @Test
  void aLauncherThatIsEndedFirstIsNotStartedAgain() throws Exception {
    Path launcher = fakeMpirun("echo started; exec sleep 60");
    List<String> options = List.of("--launcher", launcher.toString(), "--restarts=3");
    Process process = start(List.of(), options, "nothing");
    while (process.isAlive() && !Files.readString(folder.resolve("out")).contains("started")) {
      Thread.sleep(20);
    }
    for (ProcessHandle first : process.children().toList()) {
      first.destroy();
      while (first.isAlive()) { // onExit looks ever more rarely
        Thread.sleep(5);
      }
    }
    Thread.sleep(100);
    process.destroy();
    String text = end(process);
    assertEquals(143, process.exitValue(), text);
    assertEquals("started\n", text);
  }

  /** A class of mpi.jar that calls what no libmpi_java has. */
  @Test
  void bindingsOfAnotherReleaseAreSeenBefore() throws Exception {
    InstalledLauncher.require("mpirun");
    Path source = Files.createDirectories(folder.resolve("mpi")).resolve("Errhandler.java");
    Files.writeString(
        source,
        "package mpi; public final class Errhandler { static { ofAnotherRelease(); }"
            + " native static void ofAnotherRelease(); native static long getFatal();"
            + " native static long getReturn(); Errhandler(long handle) {} }");
    String classes = folder.toString();
    ToolProvider compiler = ToolProvider.findFirst("javac").orElseThrow();
    assertEquals(0, compiler.run(System.out, System.err, "-d", classes, source.toString()));
    String path = classes + File.pathSeparator + System.getProperty("java.class.path");
    Process process = start(path, List.of(), List.of("--oversubscribe"), "nothing");
    String text = end(process);
    assertEquals(3, process.exitValue(), text);
    assertTrue(text.matches("gradient-sync run: .*Java_mpi_Errhandler_ofAnotherRelease.*\n"), text);

    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String main = GradientSyncCommand.class.getName();
    Process doctor = started(List.of(java, "-cp", path, main, "doctor"));
    text = end(doctor);
    assertEquals(1, doctor.exitValue(), text);
    assertTrue(
        text.matches("(?s).*\\d\\. Open MPI's Java bindings cannot be used: .*ofAnotherRelease.*"),
        text);
  }

  /** Makes a launcher that is Open MPI's by its version, and runs a command of the shell. */
  private Path fakeMpirun(String command) throws IOException {
    Path launcher = folder.resolve("mpirun");
    String version = "[ \"$1\" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }";
    Files.writeString(launcher, "#!/bin/sh\n" + version + "\n" + command + "\n");
    assertTrue(launcher.toFile().setExecutable(true));
    return launcher;
  }

  @Test
  void pathsThatTheLocaleCannotEncodeAreNamed() throws Exception {
    String command = "LC_ALL=C exec \"$0\" run -np 2 -cp \"$(printf '/m\\303\\274ller')\" my.Main";
    Process process = started(List.of("sh", "-c", command, SCRIPT.toString()));
    String text = end(process);
    assertEquals(2, process.exitValue(), text);
    assertEquals(1, text.lines().count(), text);
    assertTrue(text.startsWith("gradient-sync run: this locale cannot encode a path: "), text);
    assertTrue(text.endsWith("; set LC_ALL=C.UTF-8, or another locale that can\n"), text);
  }

  @Test
  void javaThatIsTooOldIsNamed() throws Exception {
    String java = folder.resolve("bin/java").toString();
    assertNoJava("there is no java in JAVA_HOME: JAVA_HOME=" + folder);
    Files.createDirectories(folder.resolve("bin"));
    Files.writeString(
        Path.of(java), "#!/bin/sh\necho 'Picked up -ea'; echo 'openjdk version \"1.8.0_402\"'\n");
    assertTrue(Path.of(java).toFile().setExecutable(true));
    assertNoJava("this Java is too old: " + java + " is version 1.8.0_402");
    Files.writeString(folder.resolve("release"), "JAVA_VERSION=\"11.0.2\"\n");
    assertNoJava("this Java is too old: " + java + " is version 11.0.2");
  }

  private void assertNoJava(String found) throws Exception {
    for (String subcommand : List.of("run", "doctor")) {
      Process process =
          started(List.of("env", "JAVA_HOME=" + folder, SCRIPT.toString(), subcommand));
      String remedy = "; install a JDK of version 17 or newer, and set JAVA_HOME to its folder\n";
      assertEquals("gradient-sync: " + found + remedy, end(process));
      assertEquals(3, process.exitValue());
    }
  }

  private Process start(List<String> below, List<String> options, String argument)
      throws IOException {
    return start(System.getProperty("java.class.path"), below, options, argument);
  }

  private Process start(String classPath, List<String> below, List<String> options, String argument)
      throws IOException {
    List<String> command = new ArrayList<>(below);
    command.addAll(List.of(SCRIPT.toString(), "run", "-np", "" + ranks));
    command.addAll(options);
    command.addAll(List.of("-Dgradientsync.reports=off", "-Dgradientsync.device=host"));
    command.addAll(List.of("--class-path", classPath));
    command.addAll(List.of(RankProgram.class.getName(), argument));
    return started(command);
  }

  private Process started(List<String> command) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectOutput(to("out")).redirectError(to("err"));
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("JAVA_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    builder.environment().remove("UCX_ERROR_SIGNALS");
    return builder.start();
  }

  private ProcessBuilder.Redirect to(String name) {
    File file = folder.resolve(name).toFile();
    return appends ? ProcessBuilder.Redirect.appendTo(file) : ProcessBuilder.Redirect.to(file);
  }

  private String errors() throws IOException {
    return Files.readString(folder.resolve("err"));
  }

  private String end(Process process) throws Exception {
    if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
      process.destroy();
      process.waitFor(10, TimeUnit.SECONDS);
    }
    return Files.readString(folder.resolve("out")) + errors();
  }
}

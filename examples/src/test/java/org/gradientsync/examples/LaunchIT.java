package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the launch scripts, mostly without mpirun. */
class LaunchIT {
  private static final String PASS_ALL = "[PASS] Gradient averaging is correct on all ranks.";

  private static final Path SCRIPTS = Script.BIN.resolve("../../script").normalize();

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "gradient-average",
        "monte-carlo-pi",
        "matrix-multiply",
        "linear-regression",
        "train-mlp",
        "train-hybrid",
        "halo-exchange"
      })
  void everyProgramRunsEmbedded(String program) throws Exception {
    Run run = Script.alone(Script.BIN.resolve(program)).run(folder, "--local", "2").exits(0);
    assertTrue(run.out().contains("[PASS]"), run::toString);
    assertComplainsOfNothing(run);
  }

  /** On a busy machine any program may take long enough to print its progress. */
  private static void assertComplainsOfNothing(Run run) {
    assertTrue(run.err().lines().allMatch(line -> line.endsWith(" s so far")), run::toString);
  }

  @Test
  void programsForGpusSayThatThereIsNone() throws Exception {
    Run run = Script.alone(Script.BIN.resolve("device-selection")).run(folder).exits(0);
    run.printsLike("No GPU is used here: .* Every rank works in host memory\\.");
    assertEquals("", run.err());
    Script.alone(Script.BIN.resolve("partitioned-kernel"))
        .run(folder)
        .exits(3)
        .complainsInOneLine("a kernel needs a GPU, and none can be used here: ");
    Script.alone(Script.BIN.resolve("link-perf"))
        .run(folder)
        .exits(3)
        .complainsInOneLine("gradient-sync links: ");
  }

  @Test
  void figuresAreTheSameInEveryLanguage() throws Exception {
    Run run =
        Script.alone(Script.BIN.resolve("allreduce-perf"))
            .set("JAVA_OPTS", "-Duser.language=ar -Duser.country=EG")
            .run(folder, "--local", "2", "-b", "8", "-e", "8", "-n", "1", "-w", "0")
            .exits(0);
    assertTrue(run.out().chars().allMatch(c -> c < 128), run::toString);
  }

  @Test
  void outputThatIsLostIsNoSuccess() throws Exception {
    Path program = folder.resolve("program");
    String launcher = Script.BIN.resolve("linear-regression").toString();
    Files.writeString(program, "#!/bin/sh\nexec '" + launcher + "' --local 2 >/dev/full\n");
    assertTrue(program.toFile().setExecutable(true));
    Script.alone(program)
        .run(folder)
        .exits(3)
        .complains("linear-regression: the output cannot be written");
    String head = "set -o pipefail\n'" + launcher + "' --local 2 --steps 2 | head -1\n";
    Files.writeString(program, "#!/bin/bash\n" + head);
    assertComplainsOfNothing(Script.alone(program).run(folder).exits(0));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo",
        "fuzz",
        "gpu-bundle",
        "gpu-test",
        "measure/compare",
        "measure/compare-mpi",
        "measure/compare-training",
        "release/check-release",
        "test"
      })
  void scriptsHaveHelp(String script) throws Exception {
    Run run = Script.alone(SCRIPTS.resolve(script)).run(folder, "--help").exits(0);
    assertTrue(run.out().lines().count() > 1, run::toString);
    assertEquals("", run.err());
  }

  /** On this machine the build has made what the demo needs, which is no MPI and no CUDA. */
  @Test
  void theDemoNeedsNoMpi() throws Exception {
    Path called = folder.resolve("called");
    for (String name : new String[] {"mpirun", "mpiexec", "ompi_info", "apt-get"}) {
      Path program = Files.writeString(folder.resolve(name), "#!/bin/sh\necho $0 >>" + called);
      assertTrue(program.toFile().setExecutable(true));
    }
    Run run =
        Script.alone(SCRIPTS.resolve("demo"))
            .set("PATH", folder + ":" + System.getenv("PATH"))
            .run(folder)
            .exits(0)
            .prints("rank 3 of 4: average 1.5, launcher local, reducer local")
            .prints("[1] rank 1 of 2: average 0.5, launcher tcp, reducer shared")
            .prints("demo: all passed");
    assertFalse(Files.exists(called), run::toString);
    Script.alone(SCRIPTS.resolve("demo")).run(folder, "--no").exits(2);
  }

  @Test
  void aBundleReplacesNothingElse() throws Exception {
    Path mine = Files.createFile(Files.createDirectory(folder.resolve("mine")).resolve("thesis"));
    Script.alone(SCRIPTS.resolve("gpu-bundle"))
        .run(folder, "mine")
        .exits(2)
        .complainsInOneLine("gpu-bundle: that is something else, and would be deleted: ");
    assertTrue(Files.exists(mine));
  }

  @Test
  void oneRankIsToldHowToHaveMore() throws Exception {
    Script.alone(Script.BIN.resolve("gradient-average"))
        .run(folder)
        .exits(2)
        .complainsInOneLine("run mpirun -np 2 examples/bin/gradient-average, or add --local 2.");
  }

  @Test
  void linkToAProgramRuns() throws Exception {
    Path link = folder.resolve("link to a program");
    Files.createSymbolicLink(link, Script.BIN.resolve("gradient-average"));
    Script.alone(link)
        .set("JAVA_OPTS", "")
        .run(folder, "--local=2", "--size=5")
        .exits(0)
        .prints(PASS_ALL);
  }

  @Test
  void notBuiltIsSaidInOneSentence() throws Exception {
    Path bin = Files.createDirectories(folder.resolve("not built").resolve("bin"));
    for (String name : new String[] {"launch", "gradient-average"}) {
      Files.copy(Script.BIN.resolve(name), bin.resolve(name), StandardCopyOption.COPY_ATTRIBUTES);
    }
    Script.alone(bin.resolve("gradient-average"))
        .run(folder)
        .exits(2)
        .complainsInOneLine("run script/demo --mpi or mvn package first");
  }

  @Test
  void javaOptionsArePassedOn() throws Exception {
    Script.alone(Script.BIN.resolve("gradient-average"))
        .set("JAVA_OPTS", "-Xint -Dgradientsync.reducer=pigeon")
        .run(folder, "--local=2")
        .exits(3)
        .complainsInOneLine("no such reducer: reducer=pigeon");
  }

  @Test
  void logTellsTheChoiceWhenAsked() throws Exception {
    Script.alone(Script.BIN.resolve("gradient-average"))
        .set("JAVA_OPTS", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
        .run(folder, "--local=2")
        .exits(0)
        .complains(
            "2 ranks (threads), host memory, reducer local, faster ones not available: {cuda=");
  }

  @Test
  void limitOfHostMemoryIsTheUsersIfGiven() throws Exception {
    String[] eightMebibytes = {"--local=2", "--size=1000000", "--type=FLOAT32"};
    for (String variable : new String[] {"JAVA_OPTS", "JDK_JAVA_OPTIONS"}) {
      Script.alone(Script.BIN.resolve("gradient-average"))
          .set(variable, "-XX:MaxDirectMemorySize=6m")
          .run(folder, eightMebibytes)
          .exits(3)
          .complains("out of host memory");
    }
    // By default a heap of 16 MiB would limit all buffers to 16 MiB. The launcher raises that.
    Run run =
        Script.alone(Script.BIN.resolve("gradient-average"))
            .set("JAVA_OPTS", "-Xmx16m")
            .run(folder, "--local=2", "--size=10000000")
            .exits(0);
    run.prints(PASS_ALL);
    assertFalse(run.err().contains("out of"), run::toString);
  }

  @Test
  void jobsOfOneNodeDoNotListenToTheNetwork() throws Exception {
    String[] program = {
      "--class-path", System.getProperty("java.class.path"), ListeningSockets.class.getName()
    };
    for (String asked : new String[] {"", "self,vader,tcp"}) { // the user's choice takes precedence
      Run run =
          Script.underMpirun(2, "launch")
              .set("OMPI_MCA_btl", asked)
              .run(folder, program)
              .exits(0)
              .printsLike("rank 0 of 2 listens at .*");
      boolean open = !run.out().contains("rank 1 of 2 listens at []");
      assertEquals(!asked.isEmpty(), open, run::toString);
    }
  }

  @Test
  void missingJavaIsSaidInOneSentence() throws Exception {
    Path tools = Files.createDirectory(folder.resolve("tools"));
    for (String tool : new String[] {"bash", "dirname", "readlink", "env"}) {
      Path found = Path.of("/usr/bin", tool);
      Files.createSymbolicLink(
          tools.resolve(tool), Files.exists(found) ? found : Path.of("/bin", tool));
    }
    Script.alone(Script.BIN.resolve("gradient-average"))
        .set("JAVA_HOME", "")
        .set("PATH", tools.toString())
        .run(folder, "--local=2")
        .exits(3)
        .complainsInOneLine("gradient-sync: there is no java on the PATH");
  }
}

package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.tools.perf.AllReducePerfTest;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs the programs under mpirun through their launch scripts, from another folder. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class MpirunIT {
  private static final String PASS_ALL = "[PASS] Gradient averaging is correct on all ranks.";

  @TempDir Path folder;

  @Test
  void gradientAverageOnFourRanks() throws Exception {
    Run run = Script.underMpirun(4, "gradient-average").run(folder, "--size", "10000").exits(0);
    run.prints(
        "[Rank 0] World size = 4",
        "Number of ranks: 4",
        "Gradient vector length per rank: 10000",
        "Device: host memory",
        "avg_grad[0] = 1.500000",
        "avg_grad[5000] = 6.500000",
        "avg_grad[9999] = 11.499000",
        "[PASS] Gradient averaging is correct.",
        PASS_ALL,
        "Demo complete.");
    run.printsLike("Communication: gradients averaged via reducer [-a-z]+, launcher mpi\\.");
    assertEquals(1, run.out().lines().filter(line -> line.contains("World size")).count());
  }

  private Script withTorchrunsVariables(String rank) throws Exception {
    Path program = folder.resolve("rank");
    String launch = Script.BIN.resolve("launch").toString();
    Files.writeString(
        program,
        "#!/bin/sh\nRANK=" + rank + " exec '" + launch + "' " + FirstAverage.class.getName());
    assertTrue(program.toFile().setExecutable(true));
    return Script.underMpirun(2, program.toString())
        .set("WORLD_SIZE", "2")
        .set("MASTER_ADDR", "127.0.0.1")
        .set("MASTER_PORT", "29411");
  }

  /** Somebody's shell has torchrun's variables, and the job is mpirun's. */
  @Test
  void mpirunsRanksCountAndTorchrunsVariablesAreWarnedOf() throws Exception {
    withTorchrunsVariables("0")
        .run(folder)
        .exits(0)
        .printsLike("rank 1 of 2: average 0.5, launcher mpi, reducer [-a-z]+")
        .complains("variables or settings name several launchers: [mpi, tcp]; taking mpi");
  }

  /** mpirun has started torchrun, once on each node. */
  @Test
  void torchrunsRanksCountIfTorchrunHasStartedThem() throws Exception {
    withTorchrunsVariables("$OMPI_COMM_WORLD_RANK")
        .set("TORCHELASTIC_RUN_ID", "1")
        .run(folder)
        .exits(0)
        .printsLike("rank 1 of 2: average 0.5, launcher tcp, reducer [-a-z]+")
        .complains("variables or settings name several launchers: [tcp, mpi]; taking tcp");
  }

  @ParameterizedTest
  @CsvSource({"2,FLOAT16,100003", "3,BFLOAT16,7", "3,FLOAT64,65537", "2,FLOAT32,0"})
  void gradientAverageOfTypesAndSizes(int ranks, String type, int size) throws Exception {
    Script.underMpirun(ranks, "gradient-average")
        .run(folder, "--type", type, "--size", Integer.toString(size), "--iterations", "3")
        .exits(0)
        .prints("[Rank 0] World size = " + ranks, PASS_ALL);
  }

  @Test
  void gradientAverageByAReducerOfChoice() throws Exception {
    Script.underMpirun(2, "gradient-average")
        .run(folder, "--reducer", "mpi")
        .exits(0)
        .prints("Communication: gradients averaged via reducer mpi, launcher mpi.", PASS_ALL);
  }

  @Test
  void gradientAverageOnOneRankIsBadUse() throws Exception {
    Run run = Script.underMpirun(1, "gradient-average").run(folder).exits(2);
    run.complains("run mpirun -np 2 examples/bin/gradient-average, or add --local 2.");
    assertFalse(run.out().contains("World size"), run::toString);
  }

  @Test
  void unknownOptionIsBadUse() throws Exception {
    Script.underMpirun(2, "gradient-average")
        .run(folder, "--no-such-option")
        .exits(2)
        .complains("Unknown option: '--no-such-option'");
  }

  @Test
  void ranksWithOtherOptionsAreRefused() throws Exception {
    String program = Script.BIN.resolve("train-mlp").toString();
    Script.underMpirun(1, "train-mlp")
        .run(folder, "--rows=64", "--json=a", ":", "-np", "2", program, "--rows=32", "--json=b")
        .exits(2)
        .complains(
            "train-mlp: --rows differs from rank to rank: rank 0 has 64, ranks [1, 2] do not;");
  }

  @Test
  void unknownReducerCannotRun() throws Exception {
    Run run = Script.underMpirun(2, "gradient-average").run(folder, "--reducer", "pigeon").exits(3);
    run.complains("no such reducer: reducer=pigeon");
    assertTrue(run.err().lines().noneMatch(line -> line.startsWith("\tat ")), run::toString);
  }

  @Test
  void localUnderMpirunIsBadUse() throws Exception {
    Script.underMpirun(2, "gradient-average")
        .run(folder, "--local", "2")
        .exits(2)
        .complains("run it without mpirun");
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void monteCarloPi(int ranks) throws Exception {
    Run run = Script.underMpirun(ranks, "monte-carlo-pi").run(folder, "--samples=100000").exits(0);
    run.prints("Ranks: " + ranks + ", launcher mpi", "Total samples: " + ranks * 100_000);
    assertEquals(Math.PI, run.number("Pi estimate:"), 0.05);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void matrixMultiply(int ranks) throws Exception {
    Script.underMpirun(ranks, "matrix-multiply")
        .run(folder, "--n=101")
        .exits(0)
        .prints(
            "Ranks: " + ranks + ", launcher mpi",
            "Result shape: (101, 101)",
            "[PASS] The product is correct.");
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void linearRegression(int ranks) throws Exception {
    Run run = Script.underMpirun(ranks, "linear-regression").run(folder, "--rows=300").exits(0);
    run.prints("Ranks: " + ranks + ", launcher mpi", "[PASS] All ranks have identical weights.");
    assertTrue(run.number("Largest error of a weight:") < 0.01, run::toString);
    Run threads = Run.of(new LinearRegression(), "--local=" + ranks, "--rows=300");
    assertEquals(losses(threads), losses(run), "the same ranks as threads have taken other steps");
  }

  @ParameterizedTest
  @CsvSource({"2,true,SGD", "3,false,SGD", "3,true,ADAM"})
  void trainMlp(int ranks, boolean overlap, String optimizer) throws Exception {
    String[] options = {
      "--widths=6,20,5",
      "--rows=7",
      "--steps=30",
      "--loss-every=1",
      "--first-bucket-mb=0.0001",
      overlap ? "--overlap" : "--no-overlap",
      optimizer.equals("ADAM") ? "--sharded" : "--no-tf32",
      "--optimizer=" + optimizer,
      "--json=" + folder.resolve("r.json")
    };
    Script.underMpirun(ranks, "train-mlp")
        .run(folder, options)
        .exits(0)
        .prints("Ranks: " + ranks + ", launcher mpi", "[PASS] All ranks have identical weights.");
    Trained processes = Trained.read(folder.resolve("r.json"));
    Trained threads = Trained.run(folder, ranks, options);
    assertEquals(threads, processes, "the same ranks as threads have taken other steps");
    assertEquals(30, processes.losses().size());
    if (optimizer.equals("ADAM")) {
      options[6] = "--no-tf32"; // any option in place of --sharded
      assertEquals(Trained.run(folder, ranks, options), processes, "shards give other weights");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void haloExchange(int ranks) throws Exception {
    Script.underMpirun(ranks, "halo-exchange")
        .run(folder, "--cells=33", "--steps=50")
        .exits(0)
        .prints(
            "Cells: " + ranks * 33 + ", steps: 50",
            "[PASS] All cells are bit-equal to the serial computation.");
  }

  @ParameterizedTest
  @CsvSource({"2,2,1", "1,2,2", "2,1,2"})
  void trainHybrid(int tensor, int pipeline, int data) throws Exception {
    String[] options = {"--tensor=" + tensor, "--pipeline=" + pipeline, "--steps=4"};
    Run run = Script.underMpirun(4, "train-hybrid").run(folder, options).exits(0);
    run.prints(
        "Ranks: 4, launcher mpi",
        String.format(
            "Grid: %d tensor x %d pipeline x %d data; tensor groups in brackets",
            tensor, pipeline, data));
    run.printsLike("\\[PASS] The losses of all steps equal those of one rank; .*");
    Run threads = Run.of(new TrainHybrid(), "--local=4", options[0], options[1], options[2]);
    assertEquals(losses(threads), losses(run), "the same ranks as threads have taken other steps");
  }

  @Test
  void trainHybridWithAnotherNumberOfRanksIsBadUse() throws Exception {
    Script.underMpirun(3, "train-hybrid")
        .run(folder, "--tensor=2")
        .exits(2)
        .complains("train-hybrid: --tensor, --pipeline and --data must multiply to the number");
  }

  @Test
  void allReducePerfMeasuresEveryReducer() throws Exception {
    Run run =
        Script.underMpirun(2, "allreduce-perf")
            .run(
                folder,
                "-b=1K",
                "-e=256K",
                "-f=16",
                "-n=20",
                "--reducer=all",
                "--check",
                "--json=r.json")
            .exits(0);
    run.prints("# Reducer: shared", "# Reducer: mpi", "# Out of bounds values : 0 OK");
    run.printsLike("# Skipped: reducer local is not available, rank=0: local: .*");
    assertEquals(2 * 3, AllReducePerfTest.rows(run).size(), run::toString);
    JSON.std.mapFrom(Files.readString(folder.resolve("r.json")));
  }

  @Test
  void programsForGpusSayThatThereIsNone() throws Exception {
    Script.underMpirun(2, "device-selection")
        .run(folder)
        .exits(0)
        .prints("Ranks: 2, launcher mpi")
        .printsLike("No GPU is used here: .* Every rank works in host memory\\.");
    Script.underMpirun(2, "partitioned-kernel")
        .run(folder)
        .exits(2)
        .complains("starts the ranks itself, so run it without mpirun");
    Script.underMpirun(2, "link-perf")
        .run(folder)
        .exits(2)
        .complains(
            "gradient-sync links is one process that uses all GPUs, so run it without mpirun");
  }

  @Test
  void ranksAreNotLeftOnOneCpuEach() throws Exception {
    int cpus = Runtime.getRuntime().availableProcessors();
    Assumptions.assumeTrue(cpus > 1, "this machine has one CPU only");
    Run run =
        Script.underMpirun(2, "gradient-average") // mpirun's default for two ranks: a core for each
            .set("JAVA_OPTS", "-Xlog:gc+init=info")
            .run(folder, "--size=10")
            .exits(0);
    List<String> seen = run.out().lines().filter(line -> line.contains("CPUs: ")).toList();
    assertEquals(2, seen.size(), run::toString);
    for (String line : seen) {
      assertTrue(line.endsWith(cpus + " available"), run::toString);
    }
  }

  private static List<String> losses(Run run) {
    return run.out().lines().filter(line -> line.startsWith("Step ")).toList();
  }
}

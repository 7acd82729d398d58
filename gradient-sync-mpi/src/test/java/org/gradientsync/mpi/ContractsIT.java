package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Runs the contract tests in the ranks of real mpirun jobs, and reports each one here. */
class ContractsIT {
  /** One number of ranks instead of all, where the same tests run a second time. */
  private static final String CHOSEN = System.getenv("CONTRACT_RANKS");

  private static final int[] ALL = {1, 2, 3, 4};

  /** For what rests on the contracts that are tested with all. */
  private static final int[] SOME = {1, 3};

  @TempDir Path folder;

  @TestFactory
  List<DynamicNode> contractsHoldUnderMpirun() throws IOException, InterruptedException {
    return run(
        ALL,
        MpiCommunicatorContract.class,
        MpiReducerContract.class,
        SharedCommunicatorContract.class,
        SharedReducerContract.class,
        MixedMemory.class);
  }

  @TestFactory
  List<DynamicNode> messagesCompress() throws IOException, InterruptedException {
    return run(SOME, MpiCompressionContract.class);
  }

  @TestFactory
  List<DynamicNode> sharedMemoryCompresses() throws IOException, InterruptedException {
    return run(SOME, SharedCompressionContract.class);
  }

  @TestFactory
  List<DynamicNode> gradientBucketsHoldUnderMpirun() throws IOException, InterruptedException {
    return run(SOME, MpiBucketsContract.class, SharedBucketsContract.class);
  }

  private List<DynamicNode> run(int[] sizes, Class<?>... contracts)
      throws IOException, InterruptedException {
    Mpirun.require();
    List<DynamicNode> nodes = new ArrayList<>();
    for (int ranks : CHOSEN == null ? sizes : new int[] {Integer.parseInt(CHOSEN)}) {
      Path results = Files.createDirectory(folder.resolve(Integer.toString(ranks)));
      List<String> arguments = new ArrayList<>(List.of(results.toString()));
      for (Class<?> contract : contracts) {
        arguments.add(contract.getName());
      }
      Mpirun.Result job =
          Mpirun.run(ranks, List.of(), RankMain.class, arguments.toArray(String[]::new));
      nodes.add(DynamicContainer.dynamicContainer(ranks + " ranks", tests(ranks, results, job)));
    }
    return nodes;
  }

  private static List<DynamicTest> tests(int ranks, Path results, Mpirun.Result job)
      throws IOException {
    Map<String, List<String>> failures = new LinkedHashMap<>();
    for (int rank = 0; rank < ranks; rank++) {
      Path file = results.resolve("rank-" + rank);
      assertTrue(Files.exists(file), () -> "a rank did not finish:\n" + job.output());
      for (String line : Files.readAllLines(file)) {
        String name = line.substring(5, line.indexOf(" | "));
        List<String> causes = failures.computeIfAbsent(name, k -> new ArrayList<>());
        if (line.startsWith("FAIL")) {
          causes.add("rank " + rank + line.substring(line.indexOf(" | ")));
        }
      }
    }
    assertFalse(failures.isEmpty(), job.output());
    List<DynamicTest> tests = new ArrayList<>();
    failures.forEach(
        (name, causes) ->
            tests.add(dynamicTest(name, () -> assertTrue(causes.isEmpty(), () -> "" + causes))));
    tests.add(
        dynamicTest("the job ends well", () -> assertEquals(0, job.exitCode(), job.output())));
    return tests;
  }
}

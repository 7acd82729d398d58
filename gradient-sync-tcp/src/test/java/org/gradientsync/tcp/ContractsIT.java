package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.test.contract.RankTests;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Runs the contract tests in the ranks of jobs over TCP, and reports each test here. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class ContractsIT {
  /** These jobs are long and fill the cores, so those of other tests go first. */
  static final List<String> NICE = List.of("nice", "-n", "5");

  private static final List<String> SOAK =
      List.of(
          "-Xms192m",
          "-Xmx192m",
          "-XX:+AlwaysPreTouch", // it looks at resident memory
          "-XX:MaxDirectMemorySize=1g");

  @TempDir Path folder;

  @TestFactory
  List<DynamicTest> contractsHoldOnTwoRanks() throws Exception {
    return run(
        2,
        List.of(),
        TcpContracts.Communicator.class,
        TcpContracts.Reducer.class,
        TcpContracts.SharedReducer.class,
        TcpContracts.Collectives.class);
  }

  @TestFactory
  List<DynamicTest> contractsHoldOnThreeRanks() throws Exception {
    return run(
        3,
        List.of(),
        TcpContracts.Communicator.class,
        TcpContracts.Reducer.class,
        TcpContracts.Compression.class,
        TcpContracts.GroupedCalls.class,
        TcpContracts.Deadlock.class,
        TcpContracts.Buckets.class,
        TcpContracts.Hook.class,
        TcpContracts.Sharded.class,
        TcpContracts.Averages.class);
  }

  @TestFactory
  List<DynamicTest> partsOfASyncHoldOnFourRanks() throws Exception {
    return run(4, List.of(), TcpContracts.Groups.class);
  }

  @TestFactory
  List<DynamicTest> randomCallsHold() throws Exception {
    return run(3, SOAK, TcpContracts.Soak.class);
  }

  private List<DynamicTest> run(int size, List<String> options, Class<?>... contracts)
      throws IOException, InterruptedException {
    List<String> arguments = new ArrayList<>(List.of(folder.toString()));
    for (Class<?> contract : contracts) {
      arguments.add(contract.getName());
    }
    List<Ranks.Result> job =
        Ranks.run(NICE, size, options, RankTests.class, arguments.toArray(String[]::new));
    List<DynamicTest> tests = RankTests.report(folder, size, "" + job);
    for (Ranks.Result rank : job) {
      tests.add(dynamicTest("a rank ends well", () -> assertEquals(0, rank.exitCode(), "" + job)));
    }
    return tests;
  }
}

package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.test.contract.RankTests;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Runs the contract tests in the ranks of jobs on two nodes. */
@Tag("nodes")
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class ContractsOnTwoNodesIT {
  @TempDir Path folder;

  /** Rank 0 is on the first node, the others are on the second. */
  @TestFactory
  List<DynamicTest> contractsHold() throws Exception {
    return run(
        1,
        3,
        TcpContracts.TwoNodes.class,
        TcpContracts.Communicator.class,
        TcpContracts.Deadlock.class,
        TcpContracts.TwoLevelReducer.class,
        TcpContracts.TwoLevelHook.class,
        TcpContracts.TwoLevelDeadlock.class);
  }

  /** On nodes with equally many ranks. */
  @TestFactory
  List<DynamicTest> collectivesHoldOnEqualNodes() throws Exception {
    return run(2, 4, TcpContracts.TwoLevelCollectives.class);
  }

  private List<DynamicTest> run(int first, int size, Class<?>... contracts)
      throws IOException, InterruptedException {
    List<String> words = new ArrayList<>(List.of(RankTests.class.getName(), folder.toString()));
    for (Class<?> contract : contracts) {
      words.add(contract.getName());
    }
    List<Ranks.Result> nodes =
        TwoNodes.run(first, size, ContractsIT.NICE, List.of(), words.toArray(String[]::new));
    return RankTests.report(folder, size, "" + nodes);
  }
}

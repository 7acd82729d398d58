package org.gradientsync.mpi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Runs the contract tests in the ranks of jobs on two nodes. */
@Tag("nodes")
class ContractsOnTwoNodesIT {
  @TempDir Path folder;

  @BeforeEach
  void requireMpirun() {
    Mpirun.require();
  }

  /** Rank 0 is on the first node, the others are on the second. */
  @TestFactory
  DynamicNode contractsHold() throws IOException, InterruptedException {
    return RankJob.run(
        folder,
        3,
        Mpirun.SECONDS,
        TwoNodes.environment(folder, 1),
        List.of(),
        List.of(
            MpiTwoNodesContract.class,
            MpiCommunicatorContract.class,
            MpiDeadlockContract.class,
            TwoLevelReducerContract.class,
            TwoLevelHookContract.class,
            TwoLevelDeadlockContract.class));
  }

  /** On nodes with equally many ranks. */
  @TestFactory
  DynamicNode collectivesHoldOnEqualNodes() throws IOException, InterruptedException {
    Path ofEqual = Files.createDirectory(folder.resolve("equal"));
    return RankJob.run(
        ofEqual,
        4,
        2 * Mpirun.SECONDS,
        TwoNodes.environment(ofEqual, 2),
        List.of(),
        List.of(TwoLevelCollectivesContract.class));
  }
}

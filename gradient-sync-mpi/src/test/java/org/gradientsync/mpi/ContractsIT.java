package org.gradientsync.mpi;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.test.contract.RankJvm;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Runs the contract tests in the ranks of real mpirun jobs, and reports each test here. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class ContractsIT {
  /** Runs one number of ranks instead of all, for a second run of the same tests. */
  private static final String CHOSEN = System.getenv("CONTRACT_RANKS");

  /** The time after which a job of many contracts counts as hanging. */
  private static final long SECONDS = 2 * Mpirun.SECONDS;

  private static final int[] FEW = {1, 2, 3};

  /** For contracts that build on others. With one rank they do not need mpirun. */
  private static final int[] SOME = {3};

  @TempDir Path folder;

  @TestFactory
  List<DynamicNode> contractsHoldUnderMpirun() throws IOException, InterruptedException {
    return run(
        FEW,
        MpiCommunicatorContract.class,
        MpiReducerContract.class,
        SharedCommunicatorContract.class,
        SharedReducerContract.class,
        SharedCollectivesContract.class,
        MixedMemory.class);
  }

  /** In shared memory; by messages they are run over TCP. */
  @TestFactory
  List<DynamicNode> whatBuildsOnThemHoldsUnderMpirun() throws IOException, InterruptedException {
    return run(
        SOME,
        SharedCompressionContract.class,
        SharedGroupedCallsContract.class,
        SharedBucketsContract.class,
        SharedHookContract.class,
        SharedShardedContract.class,
        SharedAveragesContract.class,
        SharedDeadlockContract.class);
  }

  @TestFactory
  List<DynamicNode> partsOfASyncHoldUnderMpirun() throws IOException, InterruptedException {
    return run(
        new int[] {4},
        SharedReducerContract.class,
        MpiGroupsContract.class,
        SharedGroupsContract.class);
  }

  @TestFactory
  List<DynamicNode> whatGoesByMessagesHoldsUnderMpirun() throws IOException, InterruptedException {
    return run(
        SOME, MpiCollectivesContract.class, MpiHookContract.class, MpiAveragesContract.class);
  }

  /** With MPICH, the reducer's contract holds by the same binding. */
  @TestFactory
  List<DynamicNode> contractsHoldWithoutMpiJar() throws IOException, InterruptedException {
    return run(SOME, Mpirun.withoutMpiJar(), MpiCommunicatorContract.class);
  }

  private List<DynamicNode> run(int[] sizes, Class<?>... contracts)
      throws IOException, InterruptedException {
    return run(sizes, List.of(), contracts);
  }

  private List<DynamicNode> run(int[] sizes, List<String> jvmOptions, Class<?>... contracts)
      throws IOException, InterruptedException {
    List<DynamicNode> nodes = new ArrayList<>();
    for (int ranks : CHOSEN == null ? sizes : new int[] {Integer.parseInt(CHOSEN)}) {
      List<String> options = new ArrayList<>(jvmOptions);
      if (ranks == 2) {
        // Only optimized code with a core per rank may show wrong orders of memory accesses.
        options.add(RankJvm.OPTIMIZED);
      }
      nodes.add(RankJob.run(folder, ranks, SECONDS, Map.of(), options, List.of(contracts)));
    }
    return nodes;
  }
}

package org.gradientsync.tcp;

import java.util.List;
import org.gradientsync.test.contract.AveragesContract;
import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.CommunicatorContract;
import org.gradientsync.test.contract.CompressionContract;
import org.gradientsync.test.contract.DeadlockContract;
import org.gradientsync.test.contract.GroupedCallsContract;
import org.gradientsync.test.contract.GroupsContract;
import org.gradientsync.test.contract.HookContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;
import org.gradientsync.test.contract.ShardedContract;
import org.gradientsync.test.contract.SoakContract;
import org.gradientsync.test.contract.TwoNodesContract;

/**
 * The contracts over TCP. {@link ContractsIT} and {@link ContractsOnTwoNodesIT} run them in each
 * rank of a job.
 */
final class TcpContracts {
  private TcpContracts() {}

  /** With messages. */
  static class Averages extends AveragesContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Buckets extends BucketsContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Collectives extends CollectivesContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Communicator extends CommunicatorContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Compression extends CompressionContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Deadlock extends DeadlockContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class GroupedCalls extends GroupedCallsContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Groups extends GroupsContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Hook extends HookContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Reducer extends ReducerContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With messages. */
  static class Sharded extends ShardedContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("tcp");
    }
  }

  /** With memory that the ranks share. */
  static class SharedReducer extends ReducerContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("shared");
    }
  }

  /** What ranks see on several nodes. */
  static class TwoNodes extends TwoNodesContract {
    @Override
    protected List<String> reducers() {
      return List.of("two-level", "tcp");
    }
  }

  /** On several nodes. */
  static class TwoLevelReducer extends ReducerContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("two-level");
    }
  }

  /** On several nodes. */
  static class TwoLevelCollectives extends CollectivesContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("two-level");
    }
  }

  /** On several nodes. */
  static class TwoLevelDeadlock extends DeadlockContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("two-level");
    }
  }

  /** On several nodes. */
  static class TwoLevelHook extends HookContract {
    @Override
    protected RankRunner runner() {
      return new ProcessRunner("two-level");
    }
  }

  /** Random calls: sums in memory that the ranks share, all else by messages. */
  static class Soak extends SoakContract {
    private static final int SECONDS = 6;

    Soak() {
      super(SECONDS);
    }

    @Override
    protected RankRunner runner() {
      return new ProcessRunner("shared");
    }
  }
}

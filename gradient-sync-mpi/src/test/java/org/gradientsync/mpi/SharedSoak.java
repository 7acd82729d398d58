package org.gradientsync.mpi;

import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.SoakContract;

/** Makes random calls with shared memory. {@link SoakIT} runs it in each rank of an mpirun job. */
class SharedSoak extends SoakContract {
  SharedSoak() {
    super(SoakIT.SECONDS);
  }

  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}

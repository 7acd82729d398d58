package org.gradientsync.cuda;

import org.gradientsync.GradientSync;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.SoakContract;
import org.junit.jupiter.api.Nested;

/** Makes random calls on real GPUs, and watches their memory. */
class SoakOnGpu {
  private static final int SECONDS = 30;

  @Nested
  class Peer extends SoakContract {
    Peer() {
      super(SECONDS);
    }

    @Override
    protected RankRunner runner() {
      return new GpuRunner("peer");
    }

    @Override
    protected long deviceMemory(GradientSync sync) {
      return used(sync);
    }
  }

  @Nested
  class HostStaged extends SoakContract {
    HostStaged() {
      super(SECONDS);
    }

    @Override
    protected RankRunner runner() {
      return new GpuRunner("host-staged");
    }

    @Override
    protected long deviceMemory(GradientSync sync) {
      return used(sync);
    }
  }

  /** Returns the memory in use on the rank's GPU, by all processes. */
  private static long used(GradientSync sync) {
    Gpu gpu = DriverAccess.gpu((CudaDevice) sync.device());
    gpu.memory().frees().free(); // of closed syncs, which otherwise waits for the next allocation
    long[] freeAndTotal = gpu.api().memoryInfo();
    return freeAndTotal[1] - freeAndTotal[0];
  }
}

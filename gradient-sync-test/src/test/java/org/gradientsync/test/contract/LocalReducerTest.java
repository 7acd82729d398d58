package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.FloatBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** Runs the reducer contract with ranks as threads. */
class LocalReducerTest extends ReducerContract {
  /** Runs one number of ranks instead of all, for a second run of the same tests. */
  private static final String CHOSEN = System.getenv("CONTRACT_RANKS");

  @Override
  protected RankRunner runner() {
    return CHOSEN == null
        ? new LocalRunner(1, 2, 3, 5) // four ranks: as processes
        : new LocalRunner(Integer.parseInt(CHOSEN));
  }

  /**
   * Each rank has room for a chunk from every other rank. With chunks of full size that would be
   * half a GiB.
   */
  @Test
  void manyRanksTakeLittleMemoryForSmallBuffers() {
    BufferPoolMXBean direct =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .findFirst()
            .orElseThrow();
    LocalRanks.run(
        32,
        sync -> {
          long before = direct.getMemoryUsed();
          sync.barrier();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 100)) {
            sync.average(buffer);
          }
          sync.communicator().allReduce(FloatBuffer.allocate(100), ReduceOp.SUM);
          sync.barrier();
          long taken = direct.getMemoryUsed() - before;
          assertTrue(taken < 64 << 20, () -> "bytes=" + taken);
        });
  }
}

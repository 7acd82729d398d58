package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import org.gradientsync.internal.host.HostBuffers;

/**
 * Launches kernels that go over elements with however many threads they get, and take one struct.
 * Its user has a lock.
 */
final class FlatLaunch {
  private static final int THREADS = 512;
  private static final int BLOCKS_PER_SM = 4;

  private final CudaApi api;
  private final ByteBuffer struct;
  private final Pointer arguments;
  private final int mostBlocks;
  private final int[] grid = {1, 1, 1};
  private final int[] block = {THREADS, 1, 1};

  FlatLaunch(CudaApi api, int ordinal, int structBytes) {
    this.api = api;
    struct = HostBuffers.allocate(structBytes);
    arguments = api.arguments(struct, new int[] {0});
    mostBlocks = api.sms(ordinal) * BLOCKS_PER_SM;
  }

  /** What the kernel is given; the driver takes a copy at the launch. */
  ByteBuffer struct() {
    return struct;
  }

  /**
   * Enqueues it. Allocates nothing.
   *
   * @param threads that have something to do; it gets fewer if there are not so many
   */
  void launch(CUfunction function, long threads, CUstream stream) {
    grid[0] = (int) Math.max(1, Math.min(mostBlocks, (threads + THREADS - 1) / THREADS));
    api.launch(function, grid, block, 0, stream, arguments);
  }
}

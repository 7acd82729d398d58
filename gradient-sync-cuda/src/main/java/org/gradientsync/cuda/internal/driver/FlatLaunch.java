package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import org.gradientsync.core.backend.HostBuffers;

/**
 * Launches kernels that take one struct and process any number of elements with any number of
 * threads. The caller holds a lock.
 */
final class FlatLaunch {
  static final int THREADS = 512;
  private static final int BLOCKS_PER_SM = 4;

  private final CudaApi api;
  private final ByteBuffer struct;
  private final Pointer arguments;
  private final int maxBlocks;
  private final int[] grid = {1, 1, 1};
  private final int[] block = {THREADS, 1, 1};

  FlatLaunch(CudaApi api, int ordinal, int structBytes) {
    this.api = api;
    struct = HostBuffers.allocate(structBytes);
    arguments = api.arguments(struct, new int[] {0});
    maxBlocks = api.sms(ordinal) * BLOCKS_PER_SM;
  }

  /** The kernel's argument. The driver copies it during the launch. */
  ByteBuffer struct() {
    return struct;
  }

  /**
   * Enqueues a kernel. Allocates nothing.
   *
   * @param threads the number of threads that would have work; limited to those of four blocks per
   *     SM
   */
  void launch(CUfunction function, long threads, CUstream stream) {
    launchBlocks(
        function,
        (int) Math.max(1, Math.min(maxBlocks, (threads + THREADS - 1) / THREADS)),
        stream);
  }

  /** Enqueues a kernel with a number of blocks that does not depend on the GPU. */
  void launchBlocks(CUfunction function, int blocks, CUstream stream) {
    grid[0] = blocks;
    api.launch(function, grid, block, 0, stream, arguments);
  }
}

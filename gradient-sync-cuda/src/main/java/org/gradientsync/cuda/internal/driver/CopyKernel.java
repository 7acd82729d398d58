package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.Resources;

/**
 * The kernel of {@code copy_many.cu}, which copies up to {@value #MAX_COPIES} buffers in one
 * launch. The caller locks this object from {@link #begin} until {@link #end} has returned. The
 * addresses travel in the kernel's arguments, so that launches can be captured into graphs.
 */
public final class CopyKernel implements AutoCloseable {
  /** The same number as in copy_many.cu. */
  static final int MAX_COPIES = 146;

  /** The bytes of a block, as in copy_many.cu. */
  static final int TILE = 32 << 10;

  // Offsets in the kernel's struct; the addresses of the sources come first.
  private static final int TARGETS = MAX_COPIES * Long.BYTES;
  private static final int SIZES = 2 * TARGETS;
  private static final int FIRST = 3 * TARGETS;
  private static final int COPIES = FIRST + MAX_COPIES * Integer.BYTES;
  private static final int BYTES = COPIES + Long.BYTES; // a multiple of 8

  private static final int THREADS = 256;

  private final CudaApi api;
  private final CUmodule module;
  private final CUfunction function;
  private final ByteBuffer struct = HostBuffers.allocate(BYTES);
  private final Pointer arguments;
  private final int[] grid = {1, 1, 1};
  private final int[] block = {THREADS, 1, 1};
  private CUstream stream;
  private int copies;
  private int blocks;

  CopyKernel(CudaApi api, int ordinal) {
    this.api = api;
    module = KernelImages.load(api, ordinal, "copy_many");
    try {
      function = api.function(module, "copy_many");
      api.blocksPerSm(function, THREADS); // the driver may load a kernel only when it is used
      arguments = api.arguments(struct, new int[] {0});
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /** Begins a row of copies, which do not overlap. */
  public void begin(CUstream newStream) {
    stream = newStream;
    copies = 0;
    blocks = 0;
  }

  /**
   * Adds a copy, which a full launch enqueues at once. The GPU's context is current. Allocates
   * nothing.
   *
   * @param bytes an even number, as the addresses are
   */
  public void copy(long source, long target, long bytes) {
    if (bytes == 0) {
      return;
    }
    struct.putLong(copies * Long.BYTES, source);
    struct.putLong(TARGETS + copies * Long.BYTES, target);
    struct.putLong(SIZES + copies * Long.BYTES, bytes);
    struct.putInt(FIRST + copies * Integer.BYTES, blocks);
    copies++;
    blocks = Math.addExact(blocks, Math.toIntExact((bytes - 1) / TILE + 1));
    if (copies == MAX_COPIES) {
      end();
    }
  }

  /** Enqueues what is left. */
  public void end() {
    if (copies > 0) {
      struct.putInt(COPIES, copies);
      grid[0] = blocks;
      copies = 0;
      blocks = 0;
      api.launch(function, grid, block, 0, stream, arguments);
    }
  }

  @Override
  public void close() {
    api.unloadModule(module);
  }
}

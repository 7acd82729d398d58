package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.DataType;
import org.gradientsync.host.HostBuffers;
import org.gradientsync.spi.Resources;

/** The kernels of {@code finite.cu}, which look for elements that are not finite. */
final class FiniteKernel implements AutoCloseable {
  private static final int COUNT = Long.BYTES;
  private static final int MASK = 2 * Long.BYTES;
  private static final int FOUND = 3 * Long.BYTES;
  private static final int BYTES = 4 * Long.BYTES;
  private static final int THREADS = 512;
  private static final int BLOCKS_PER_MULTIPROCESSOR = 4;
  private static final int ELEMENTS_PER_THREAD = 8;

  private final CudaDevice device;
  private final CUmodule module;
  private final CUfunction[] functions = new CUfunction[DataType.values().length];
  private final ByteBuffer memory = HostBuffers.allocate(BYTES);
  private final Pointer arguments;
  private final int mostBlocks;
  private final int[] grid = {1, 1, 1};
  private final int[] block = {THREADS, 1, 1};

  FiniteKernel(CudaDevice device) {
    this.device = device;
    CudaApi api = device.api();
    module = api.loadModule(ReduceKernel.resource("finite.ptx"));
    try {
      for (DataType type : DataType.values()) {
        if (type.isFloatingPoint()) {
          functions[type.ordinal()] = api.function(module, "finite_" + type.sizeInBytes());
        }
      }
      arguments = api.arguments(memory, new int[] {0});
      mostBlocks = api.multiprocessors(device.ordinal()) * BLOCKS_PER_MULTIPROCESSOR;
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.unloadModule(module));
      throw e;
    }
  }

  /**
   * Enqueues a look at a buffer, on its stream. Integers and empty buffers are not looked at.
   * Allocates nothing.
   *
   * @param found where the GPU finds 8 bytes of page-locked memory, for the index, counted from 1
   */
  synchronized void launch(CudaBuffer buffer, long found) {
    CUfunction function = functions[buffer.type().ordinal()];
    if (function == null || buffer.count() == 0) {
      return;
    }
    memory.putLong(0, buffer.address());
    memory.putLong(COUNT, buffer.count());
    memory.putLong(MASK, mask(buffer.type()));
    memory.putLong(FOUND, found);
    long blocks = buffer.count() / (THREADS * ELEMENTS_PER_THREAD) + 1;
    grid[0] = (int) Math.min(mostBlocks, blocks);
    device.makeCurrent();
    device.api().launch(function, grid, block, 0, buffer.stream().handle(), arguments);
  }

  /** The exponent's bits. */
  private static long mask(DataType type) {
    return switch (type) {
      case FLOAT16 -> 0x7c00;
      case BFLOAT16 -> 0x7f80;
      case FLOAT32 -> 0x7f800000;
      case FLOAT64 -> 0x7ff0000000000000L;
      case INT32, INT64 -> throw new IllegalArgumentException("integers are finite: type=" + type);
    };
  }

  @Override
  public void close() {
    device.api().unloadModule(module);
  }
}

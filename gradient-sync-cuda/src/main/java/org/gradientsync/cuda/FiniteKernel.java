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
  /** Size of what a kernel leaves for the host: what was found, and in which call. */
  static final int REPORT_BYTES = 2 * Long.BYTES;

  /** What is found is a number of the host's above, and an index counted from 1 below. */
  private static final int INDEX_BITS = 43;

  private static final int COUNT = Long.BYTES;
  private static final int MASK = 2 * Long.BYTES;
  private static final int NUMBER = 3 * Long.BYTES;
  private static final int CALL = 4 * Long.BYTES;
  private static final int REPORT = 5 * Long.BYTES;
  private static final int BYTES = 6 * Long.BYTES;
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
   * @param number what the report is to say if something is found, below 2^21
   * @param call and of which call; 0 for those that nobody counts, which report the time
   * @param report where the GPU finds {@link #REPORT_BYTES} of page-locked memory
   */
  synchronized void launch(CudaBuffer buffer, long number, long call, long report) {
    CUfunction function = functions[buffer.type().ordinal()];
    if (function == null || buffer.count() == 0) {
      return;
    }
    memory.putLong(0, buffer.address());
    memory.putLong(COUNT, buffer.count());
    memory.putLong(MASK, mask(buffer.type()));
    memory.putLong(NUMBER, number);
    memory.putLong(CALL, call);
    memory.putLong(REPORT, report);
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

  static long indexOf(long found) {
    return (found & (1L << INDEX_BITS) - 1) - 1;
  }

  static int numberOf(long found) {
    return (int) (found >>> INDEX_BITS);
  }

  @Override
  public void close() {
    device.api().unloadModule(module);
  }
}

package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.DataType;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.Resources;

/** The kernels of {@code norm.cu}: sums of squares, and scaling. Thread-safe. */
public final class NormKernel implements AutoCloseable {
  // Offsets in the kernels' struct; the address of the elements comes first.
  private static final int COUNT = Long.BYTES;
  private static final int FACTOR = 2 * Long.BYTES;
  private static final int SUMS = 3 * Long.BYTES;
  private static final int BYTES = 4 * Long.BYTES;

  /** The number of blocks depends on the count only: all GPUs add in the same order. */
  private static final int MAX_BLOCKS = 512;

  private static final long ELEMENTS_PER_BLOCK = 512 * 8; // a few for each thread

  private final CudaApi api;
  private final CUfunction[] squares = new CUfunction[DataType.values().length];
  private final CUfunction[] scale = new CUfunction[DataType.values().length];
  private final FlatLaunch kernel;

  /** Page-locked. Each block writes its sum. */
  private final ByteBuffer sums = HostBuffers.allocate(MAX_BLOCKS * Double.BYTES);

  private final Resources resources = new Resources();

  /** Loads the kernels. The GPU's context is current. */
  NormKernel(CudaApi api, int ordinal) {
    this.api = api;
    try {
      api.pageLock(sums);
      resources.add(() -> api.pageUnlock(sums));
      CUmodule module = KernelImages.load(api, ordinal, "norm");
      resources.add(() -> api.unloadModule(module));
      for (DataType type : DataType.values()) {
        if (type.isFloatingPoint()) {
          squares[type.ordinal()] = api.function(module, "squares_" + type);
          scale[type.ordinal()] = api.function(module, "scale_" + type);
        }
      }
      kernel = new FlatLaunch(api, ordinal, BYTES);
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /** Waits for the work enqueued on the stream, and returns the sum. Allocates nothing. */
  public synchronized double sumOfSquares(
      DataType type, long address, long count, GpuStream stream) {
    int blocks = blocks(count);
    launch(squares, type, address, count, 1, stream);
    stream.await();
    double sum = 0;
    for (int block = 0; block < blocks; block++) {
      sum += sums.getDouble(block * Double.BYTES);
    }
    return sum;
  }

  /** Enqueues the scaling. Allocates nothing. */
  public synchronized void scale(
      DataType type, long address, long count, double factor, GpuStream stream) {
    launch(scale, type, address, count, factor, stream);
  }

  private void launch(
      CUfunction[] functions,
      DataType type,
      long address,
      long count,
      double factor,
      GpuStream stream) {
    if (!type.isFloatingPoint()) {
      throw new IllegalArgumentException("integers have no norm: type=" + type);
    }
    if (count > 0) {
      ByteBuffer struct = kernel.struct();
      struct.putLong(0, address);
      struct.putLong(COUNT, count);
      struct.putDouble(FACTOR, factor);
      struct.putLong(SUMS, api.deviceAddress(sums));
      kernel.launchBlocks(functions[type.ordinal()], blocks(count), stream.handle());
    }
  }

  /** How many blocks there are; 0 for no elements. */
  private static int blocks(long count) {
    return (int) Math.min(MAX_BLOCKS, (count + ELEMENTS_PER_BLOCK - 1) / ELEMENTS_PER_BLOCK);
  }

  @Override
  public void close() {
    resources.close();
  }
}

package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.DataType;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.Resources;

/**
 * Looks for a NaN or an infinity in a buffer with the kernels of {@code finite.cu}, and waits for
 * the result. Thread-safe.
 */
public final class FiniteCheck implements AutoCloseable {
  // Offsets in the kernels' struct; the address of the elements comes first.
  private static final int COUNT = Long.BYTES;
  private static final int MASK = 2 * Long.BYTES;
  private static final int FOUND = 3 * Long.BYTES;
  private static final int BYTES = 4 * Long.BYTES;
  private static final int ELEMENTS_PER_THREAD = 8;

  private final CudaApi api;
  private final CUfunction[] functions = new CUfunction[DataType.values().length];
  private final FlatLaunch kernel;

  /** Page-locked. The kernel writes the index of such an element, counted from 1. */
  private final ByteBuffer found = HostBuffers.allocate(Long.BYTES);

  private final Resources resources = new Resources();

  FiniteCheck(CudaApi api, int ordinal) {
    this.api = api;
    try {
      api.pageLock(found);
      resources.add(() -> api.pageUnlock(found));
      CUmodule module = KernelImages.load(api, ordinal, "finite");
      resources.add(() -> api.unloadModule(module));
      for (DataType type : DataType.values()) {
        if (type.isFloatingPoint()) {
          functions[type.ordinal()] = api.function(module, "finite_" + type.sizeInBytes());
        }
      }
      kernel = new FlatLaunch(api, ordinal, BYTES);
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /**
   * {@return the index of a NaN or an infinity, after the work enqueued on the buffer's stream so
   * far; -1 if there is none, and for integers} The GPU's context is current. Allocates nothing.
   */
  public synchronized long first(DataType type, long address, long count, GpuStream stream) {
    found.putLong(0, 0);
    CUfunction function = functions[type.ordinal()];
    if (function != null && count > 0) {
      ByteBuffer struct = kernel.struct();
      struct.putLong(0, address);
      struct.putLong(COUNT, count);
      struct.putLong(MASK, mask(type));
      struct.putLong(FOUND, api.deviceAddress(found));
      kernel.launch(function, count / ELEMENTS_PER_THREAD + 1, stream.handle());
    }
    stream.await();
    return found.getLong(0) - 1;
  }

  /** The bits of the exponent, which are all set in NaN and infinities. */
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
    resources.close();
  }
}

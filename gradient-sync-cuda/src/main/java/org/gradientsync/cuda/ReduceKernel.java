package org.gradientsync.cuda;

import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Resources;

/** The kernels of {@code reduce.cu}: one for each type and operation, and for conversions. */
final class ReduceKernel implements AutoCloseable {
  /** As in reduce.cu. */
  static final int MAX_RANKS = 256;

  private static final int TARGET = MAX_RANKS * Long.BYTES;
  private static final int COUNT = TARGET + Long.BYTES;
  private static final int RANKS = COUNT + Long.BYTES;
  private static final int BYTES = RANKS + Long.BYTES;

  private final CudaDevice device;
  private final CUmodule module;
  private final CUfunction[][] functions =
      new CUfunction[DataType.values().length][ReduceOp.values().length];
  private final CUfunction[] fromFloat = new CUfunction[DataType.values().length];
  private final CUfunction[] toFloat = new CUfunction[DataType.values().length];
  private final FlatLaunch kernel;

  ReduceKernel(CudaDevice device) {
    this.device = device;
    CudaApi api = device.api();
    module = KernelImages.load(device, "reduce");
    try {
      find(api);
      kernel = new FlatLaunch(device, BYTES);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private void find(CudaApi api) {
    for (DataType type : DataType.values()) {
      for (ReduceOp op : ReduceOp.values()) {
        if (op.isDefinedFor(type)) {
          functions[type.ordinal()][op.ordinal()] =
              api.function(module, "reduce_" + type + "_" + op);
        }
      }
    }
    for (DataType half : new DataType[] {DataType.FLOAT16, DataType.BFLOAT16}) {
      fromFloat[half.ordinal()] = api.function(module, "convert_FLOAT32_" + half);
      toFloat[half.ordinal()] = api.function(module, "convert_" + half + "_FLOAT32");
    }
  }

  /** Enqueues on a stream. */
  synchronized void launch(
      CudaStream stream, DeviceBuffer[] sources, CudaBuffer target, ReduceOp op) {
    if (sources.length > MAX_RANKS) {
      throw new IllegalArgumentException(
          "too many ranks for one kernel: ranks=" + sources.length + ", most=" + MAX_RANKS);
    }
    for (int rank = 0; rank < sources.length; rank++) {
      kernel.struct().putLong(rank * Long.BYTES, ((CudaBuffer) sources[rank]).address());
    }
    kernel.struct().putInt(RANKS, sources.length);
    launch(functions[target.type().ordinal()][op.ordinal()], stream, target);
  }

  /** Enqueues on the target's stream a copy that changes FLOAT32 to a 16-bit type, or back. */
  synchronized void convert(CudaBuffer source, CudaBuffer target) {
    boolean narrows = source.type() == DataType.FLOAT32;
    kernel.struct().putLong(0, source.address());
    launch(
        narrows ? fromFloat[target.type().ordinal()] : toFloat[source.type().ordinal()],
        target.stream(),
        target);
  }

  private void launch(CUfunction function, CudaStream stream, CudaBuffer target) {
    kernel.struct().putLong(TARGET, target.address());
    kernel.struct().putLong(COUNT, target.count());
    kernel.launch(function, target.count(), stream);
  }

  @Override
  public void close() {
    device.api().unloadModule(module);
  }
}

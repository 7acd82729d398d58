package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Resources;

/**
 * The kernels of {@code reduce.cu}, which reduce (one per type and operation), convert, and add up
 * rows.
 */
public final class ReduceKernel implements AutoCloseable {
  /** The same number as in reduce.cu. */
  static final int MAX_RANKS = 256;

  // Offsets in the kernels' struct; the addresses of the sources come first.
  private static final int TARGET = MAX_RANKS * Long.BYTES;
  private static final int COUNT = TARGET + Long.BYTES;
  private static final int RANKS = COUNT + Long.BYTES;
  private static final int ALL = RANKS + Integer.BYTES;
  private static final int RUNNING = ALL + Integer.BYTES;
  private static final int BYTES = RUNNING + Long.BYTES;

  private final CudaApi api;
  private final CUmodule module;
  private final CUfunction[][] reduce = functions();
  private final CUfunction[][] accumulate = functions();
  private final CUfunction[] fromFloat = new CUfunction[DataType.values().length];
  private final CUfunction[] toFloat = new CUfunction[DataType.values().length];
  private CUfunction sumRows;
  private final FlatLaunch kernel;

  ReduceKernel(CudaApi api, int ordinal) {
    this.api = api;
    module = KernelImages.load(api, ordinal, "reduce");
    try {
      find();
      kernel = new FlatLaunch(api, ordinal, BYTES);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private static CUfunction[][] functions() {
    return new CUfunction[DataType.values().length][ReduceOp.values().length];
  }

  private CUfunction function(String kernel, DataType type, ReduceOp op) {
    return api.function(module, kernel + "_" + type + "_" + op);
  }

  private void find() {
    for (DataType type : DataType.values()) {
      for (ReduceOp op : ReduceOp.values()) {
        if (op.isDefinedFor(type)) {
          ReduceOp adds = op == ReduceOp.AVERAGE ? ReduceOp.SUM : op;
          reduce[type.ordinal()][op.ordinal()] = function("reduce", type, op);
          accumulate[type.ordinal()][op.ordinal()] = function("accumulate", type, adds);
        }
      }
    }
    for (DataType half : new DataType[] {DataType.FLOAT16, DataType.BFLOAT16}) {
      fromFloat[half.ordinal()] = api.function(module, "convert_FLOAT32_" + half);
      toFloat[half.ordinal()] = api.function(module, "convert_" + half + "_FLOAT32");
    }
    sumRows = api.function(module, "sum_rows");
    api.blocksPerSm(sumRows, FlatLaunch.THREADS); // loads it now, not while averages run
  }

  public static void requireRanks(int ranks) {
    if (ranks > MAX_RANKS) {
      throw new IllegalArgumentException(
          "too many ranks for one kernel: ranks=" + ranks + ", most=" + MAX_RANKS);
    }
  }

  /**
   * Sets the address of a rank's elements. The caller locks this object until {@link #reduce} has
   * returned.
   */
  public void source(int rank, long address) {
    kernel.struct().putLong(rank * Long.BYTES, address);
  }

  /** Enqueues the reduction of the elements that {@link #source} has set. */
  public void reduce(
      int ranks, long target, long count, DataType type, ReduceOp op, CUstream stream) {
    finish(0, ranks, ranks, target, count, type, op, stream);
  }

  /**
   * Enqueues the reduction of {@code running} and the elements that {@link #source} has set.
   *
   * @param running the address of elements of the accumulator type, or 0
   * @param target the address of elements of the accumulator type
   */
  public void accumulate(
      long running,
      int ranks,
      long target,
      long count,
      DataType type,
      ReduceOp op,
      CUstream stream) {
    kernel.struct().putLong(RUNNING, running).putInt(RANKS, ranks);
    launch(accumulate[type.ordinal()][op.ordinal()], target, count, stream);
  }

  /**
   * As {@link #accumulate}, but the target is of the sources' type.
   *
   * @param all what AVERAGE divides by
   */
  public void finish(
      long running,
      int ranks,
      int all,
      long target,
      long count,
      DataType type,
      ReduceOp op,
      CUstream stream) {
    kernel.struct().putLong(RUNNING, running).putInt(RANKS, ranks).putInt(ALL, all);
    launch(reduce[type.ordinal()][op.ordinal()], target, count, stream);
  }

  /** Enqueues a conversion from FLOAT32 to a 16-bit type, or back. */
  public synchronized void convert(
      long source, DataType from, long target, DataType to, long count, CUstream stream) {
    kernel.struct().putLong(0, source);
    CUfunction function =
        from == DataType.FLOAT32 ? fromFloat[to.ordinal()] : toFloat[from.ordinal()];
    launch(function, target, count, stream);
  }

  /**
   * Enqueues a sum of rows.
   *
   * @param rows how many rows the source has
   * @param count how many elements the target has
   */
  public synchronized void sumRows(
      long source, long table, long rows, int width, long target, long count, CUstream stream) {
    kernel
        .struct()
        .putLong(0, source)
        .putLong(Long.BYTES, table)
        .putLong(2 * Long.BYTES, table + rows * Integer.BYTES)
        .putInt(RANKS, width);
    launch(sumRows, target, count, stream);
  }

  /** Enqueues a kernel that does nothing. */
  synchronized void runNothing(CUstream stream) {
    reduce(1, 0, 0, DataType.FLOAT32, ReduceOp.SUM, stream);
  }

  private void launch(CUfunction function, long target, long count, CUstream stream) {
    kernel.struct().putLong(TARGET, target);
    kernel.struct().putLong(COUNT, count);
    kernel.launch(function, count, stream);
  }

  @Override
  public void close() {
    api.unloadModule(module);
  }
}

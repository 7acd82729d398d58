package org.gradientsync.core.host;

import java.nio.Buffer;
import java.util.EnumMap;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * The arithmetic of one thread on host buffers, in small arrays that fit in the processor's cache.
 * Each thread has its own arrays, so that two groups of a rank never wait for each other.
 */
final class HostArithmetic {
  private final FiniteScan finiteScan = new FiniteScan();
  private final Map<DataType, Accumulator> accumulators = new EnumMap<>(DataType.class);

  /**
   * See {@link org.gradientsync.spi.BackendDevice#reduce}.
   *
   * @param sources two or more
   */
  void reduce(DeviceBuffer[] sources, HostBuffer target, ReduceOp op) {
    finish(null, sources, target, op, sources.length);
  }

  /** See {@link org.gradientsync.spi.BackendDevice#finish}. */
  void finish(
      HostBuffer running, DeviceBuffer[] sources, HostBuffer target, ReduceOp op, int ranks) {
    Accumulator accumulator = accumulator(target.type());
    requireDenormals(accumulator);
    int last = sources.length - 1;
    for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
      combine(accumulator, running, sources, last, first, count, op);
      ((HostBuffer) sources[last]).read(first, accumulator.incoming(), 0, count);
      target.write(first, accumulator.finish(op, ranks, count), 0, count);
    }
    canonicalize(accumulator, target, target.count());
  }

  private static void canonicalize(Accumulator accumulator, HostBuffer target, long length) {
    if (accumulator.takeMaybeNaN()) {
      for (long first = 0; first < length; first += Accumulator.BLOCK) {
        int count = (int) Math.min(Accumulator.BLOCK, length - first);
        target.read(first, accumulator.incoming(), 0, count);
        target.write(first, accumulator.canonicalize(count), 0, count);
      }
    }
  }

  /** See {@link HostDevice#round}. */
  void round(HostBuffer total, HostBuffer target, long length, ReduceOp op, int ranks) {
    Accumulator accumulator = accumulator(target.type());
    requireDenormals(accumulator);
    for (long first = 0; first < length; first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, length - first);
      total.read(first, accumulator.running(), 0, count);
      target.write(first, accumulator.round(op, ranks, count), 0, count);
    }
    canonicalize(accumulator, target, length);
  }

  /** See {@link HostDevice#accumulate}. */
  void accumulate(
      HostBuffer running, DeviceBuffer[] sources, HostBuffer target, long length, ReduceOp op) {
    Accumulator accumulator = accumulator(sources[0].type());
    requireDenormals(accumulator);
    for (long first = 0; first < length; first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, length - first);
      combine(accumulator, running, sources, sources.length, first, count, op);
      target.write(first, accumulator.running(), 0, count);
    }
  }

  /** Combines a block of a running reduction with the first sources. */
  private static void combine(
      Accumulator accumulator,
      HostBuffer running, // or null
      DeviceBuffer[] sources,
      int end,
      long first,
      int count,
      ReduceOp op) {
    int next = 0;
    if (running != null) {
      running.read(first, accumulator.running(), 0, count);
    } else {
      ((HostBuffer) sources[next++]).read(first, accumulator.first(), 0, count);
      accumulator.begin(count);
    }
    for (; next < end; next++) {
      ((HostBuffer) sources[next]).read(first, accumulator.incoming(), 0, count);
      accumulator.combineNext(op, count);
    }
  }

  private static void requireDenormals(Accumulator accumulator) {
    if (accumulator instanceof FloatAccumulator || accumulator instanceof DoubleAccumulator) {
      Denormals.requireKept(); // a library may have been loaded since the last call
    }
  }

  /** See {@link org.gradientsync.spi.BackendDevice#firstNotFinite}. */
  long firstNotFinite(HostBuffer buffer) {
    return finiteScan.first(buffer);
  }

  /** See {@link org.gradientsync.spi.BackendDevice#convert}. */
  void convert(HostBuffer source, HostBuffer target) {
    Denormals.requireKept();
    DataType half = source.type() == DataType.FLOAT32 ? target.type() : source.type();
    boolean narrows = half == target.type();
    HalfAccumulator converter = (HalfAccumulator) accumulator(half);
    for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
      Buffer from = narrows ? converter.wide() : converter.incoming();
      source.read(first, from, 0, count);
      Buffer to = narrows ? converter.narrow(count) : converter.widen(count);
      target.write(first, to, 0, count);
    }
  }

  private Accumulator accumulator(DataType type) {
    Accumulator accumulator = accumulators.get(type);
    if (accumulator == null) {
      accumulator = Accumulator.of(type);
      accumulators.put(type, accumulator);
    }
    return accumulator;
  }
}

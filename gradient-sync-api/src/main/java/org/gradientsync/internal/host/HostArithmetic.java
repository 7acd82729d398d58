package org.gradientsync.internal.host;

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
    Accumulator accumulator = accumulator(target.type());
    if (accumulator instanceof FloatAccumulator || accumulator instanceof DoubleAccumulator) {
      Denormals.requireKept(); // a library may have been loaded since the last call
    }
    for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
      ((HostBuffer) sources[0]).read(first, accumulator.first(), 0, count);
      accumulator.begin(count);
      int last = sources.length - 1;
      for (int rank = 1; rank < last; rank++) {
        ((HostBuffer) sources[rank]).read(first, accumulator.incoming(), 0, count);
        accumulator.combineNext(op, count);
      }
      ((HostBuffer) sources[last]).read(first, accumulator.incoming(), 0, count);
      target.write(first, accumulator.finish(op, sources.length, count), 0, count);
    }
    if (accumulator.takeMaybeNaN()) {
      for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
        int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
        target.read(first, accumulator.incoming(), 0, count);
        target.write(first, accumulator.canonicalize(count), 0, count);
      }
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

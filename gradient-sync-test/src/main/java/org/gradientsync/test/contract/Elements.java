package org.gradientsync.test.contract;

import java.lang.ref.SoftReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongUnaryOperator;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * The first elements of a rank, or of a reduction, as raw memory. They are kept, because many tests
 * need the same ones, and computing them takes longer than the reductions. Any thread may call
 * this.
 */
final class Elements {
  /**
   * The number of elements after which the same ones come again, and the most that are kept of each
   * kind. It is a prime number, so that no chunk looks like another one.
   */
  static final int PERIOD = (1 << 19) - 1;

  private static final Map<Kind, Elements> ALL = new ConcurrentHashMap<>();

  private final DataType type;
  private final LongUnaryOperator bits;
  private SoftReference<ByteBuffer> kept = new SoftReference<>(null);

  private Elements(Kind kind) {
    type = kind.type;
    bits =
        kind.op == null
            ? index -> Numbers.bits(type, kind.ranks, index)
            : index -> Numbers.reduced(type, kind.op, kind.ranks, index);
  }

  /**
   * What elements depend on, other than their index.
   *
   * @param op null for a rank's own
   * @param ranks the number of ranks, or the rank
   */
  private record Kind(DataType type, ReduceOp op, int ranks) {}

  /** Returns those of one rank. */
  static Elements of(DataType type, int rank) {
    return ALL.computeIfAbsent(new Kind(type, null, rank), Elements::new);
  }

  /** Returns those that a reduction makes. */
  static Elements reduced(DataType type, ReduceOp op, int ranks) {
    return ALL.computeIfAbsent(new Kind(type, op, ranks), Elements::new);
  }

  /** Returns a copy of the elements from an index on. */
  ByteBuffer copy(long first, int count) {
    ByteBuffer copy = Numbers.memory(type, count);
    boolean few = count <= PERIOD;
    if (few && first + count > PERIOD) {
      compute(copy, first, 0);
      return copy;
    }
    ByteBuffer source = keep(few ? (int) first + count : PERIOD);
    int size = type.sizeInBytes();
    for (int done = 0, length; done < count; done += length) {
      int from = (int) ((first + done) % PERIOD);
      length = Math.min(count - done, PERIOD - from);
      copy.put(done * size, source, from * size, length * size);
    }
    return copy;
  }

  /** Returns the first elements, and perhaps more. Threads that need the same wait for one. */
  private synchronized ByteBuffer keep(int count) {
    ByteBuffer before = kept.get();
    int size = type.sizeInBytes();
    if (before != null && before.capacity() >= count * size) {
      return before;
    }
    ByteBuffer more = ByteBuffer.allocate(count * size).order(ByteOrder.nativeOrder());
    int done = 0;
    if (before != null) {
      more.put(0, before, 0, before.capacity());
      done = before.capacity() / size;
    }
    compute(more, 0, done);
    kept = new SoftReference<>(more);
    return more;
  }

  /** Computes the elements of a memory, whose first has an index, but for some at its start. */
  private void compute(ByteBuffer memory, long first, int done) {
    for (int i = done; i < memory.capacity() / type.sizeInBytes(); i++) {
      Numbers.put(memory, type, i, bits.applyAsLong(first + i));
    }
  }
}

package org.gradientsync.test.contract;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** What the parts of {@link Soak} share: what they draw, and how they compare. */
final class SoakChecks {
  static final int LARGE = 60_001;
  static final DataType[] TYPES = DataType.values();

  private SoakChecks() {}

  static int count(SplittableRandom random) {
    return switch (random.nextInt(12)) {
      case 0, 1 -> random.nextInt(3);
      case 2 -> random.nextInt(LARGE / 3, LARGE) | 1;
      case 3 -> random.nextInt(10_000);
      default -> random.nextInt(1, 1_500);
    };
  }

  /** The index of the first element: behind those that are kept, which would count as a leak. */
  static int data(SplittableRandom random) {
    return Elements.PERIOD + random.nextInt(1 << 20);
  }

  static ReduceOp op(SplittableRandom random, DataType type) {
    ReduceOp op = ReduceOp.values()[random.nextInt(ReduceOp.values().length)];
    return op == ReduceOp.AVERAGE && !type.isFloatingPoint() ? ReduceOp.SUM : op;
  }

  static void require(boolean condition, String otherwise) {
    if (!condition) {
      throw new AssertionError(otherwise);
    }
  }

  /** All ranks have the same bits, whichever these are. Collective. */
  static void agree(GradientSync sync, DeviceBuffer buffer) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(memory);
    byte[] bytes = new byte[memory.capacity()];
    memory.get(0, bytes);
    List<byte[]> all = sync.communicator().allGather(bytes);
    for (int peer = 0; peer < all.size(); peer++) {
      require(Arrays.equals(bytes, all.get(peer)), "rank " + peer + " has other bits");
    }
  }

  static void check(ByteBuffer expected, DeviceBuffer buffer, Object what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    check(expected, actual, buffer.type(), what);
  }

  static void check(ByteBuffer expected, ByteBuffer actual, DataType type, Object what) {
    int difference = expected.mismatch(actual);
    if (difference >= 0) {
      throw new AssertionError(
          "wrong bits: %s, type=%s, bytes=%s, index=%s"
              .formatted(what, type, expected.remaining(), difference / type.sizeInBytes()));
    }
  }
}

package org.gradientsync.core.sync;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;

/** Checks the input and the output of a collective before anything is sent. */
final class CollectiveArguments {
  private CollectiveArguments() {}

  /**
   * Throws if types or counts do not match, or the buffers overlap in a way that the collective
   * does not allow.
   */
  static void require(CollectiveCall call, int rank, int size) {
    Kind kind = call.kind();
    DeviceBuffer in = call.in();
    DeviceBuffer out = call.out();
    if (kind == Kind.ALL_REDUCE || kind == Kind.BROADCAST || kind.isMessage()) {
      return; // one buffer
    }
    requireBlocks("in", in, kind.inputBlocks(size), size, rank);
    requireBlocks("out", out, kind.outputBlocks(size), size, rank);
    if (in == null || out == null) {
      return;
    }
    long block = call.blockCount(size);
    long expected = block * kind.outputBlocks(size);
    if (in.type() != out.type() || out.count() != expected) {
      throw new IllegalArgumentException(
          "types or counts do not match: in="
              + in
              + ", out="
              + out
              + ", expected="
              + in.type()
              + "["
              + expected
              + "], size="
              + size
              + ", rank="
              + rank);
    }
    AbstractDeviceBuffer from = (AbstractDeviceBuffer) in;
    AbstractDeviceBuffer to = (AbstractDeviceBuffer) out;
    if (from.overlaps(to) && !isInPlace(kind, from, to, rank * block)) {
      throw new IllegalArgumentException(
          "in and out overlap: in="
              + in
              + ", out="
              + out
              + ", rank="
              + rank
              + "; give separate buffers"
              + (kind == Kind.ALL_TO_ALL
                  ? ""
                  : ", or this rank's block of the larger buffer as the other one"));
    }
  }

  private static void requireBlocks(
      String role, DeviceBuffer buffer, int blocks, int size, int rank) {
    if (buffer != null && buffer.count() % blocks != 0) {
      throw new IllegalArgumentException(
          "count is not a multiple of the number of ranks: "
              + role
              + "="
              + buffer
              + ", size="
              + size
              + ", rank="
              + rank);
    }
  }

  /** Whether one buffer is this rank's block of the other one. */
  private static boolean isInPlace(
      Kind kind, AbstractDeviceBuffer in, AbstractDeviceBuffer out, long first) {
    return switch (kind) {
      case ALL_GATHER, GATHER -> in.isPartOf(out, first);
      case REDUCE_SCATTER, SCATTER -> out.isPartOf(in, first);
      case REDUCE -> in.isPartOf(out, 0);
      default -> false;
    };
  }
}

package org.gradientsync.internal.sync;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Collective;

/** Checks the input and the output of a collective before anything is sent. */
final class CollectiveArguments {
  private CollectiveArguments() {}

  /**
   * Throws if types or counts do not match, or the buffers overlap in a way that the collective
   * does not allow.
   *
   * @param in this rank's input, or null
   * @param out this rank's output, or null
   */
  static void require(
      Collective collective, DeviceBuffer in, DeviceBuffer out, int rank, int size) {
    requireBlocks("in", in, collective.inputBlocks(size), size, rank);
    requireBlocks("out", out, collective.outputBlocks(size), size, rank);
    if (in == null || out == null) {
      return;
    }
    long block = collective.blockCount(in, out, size);
    long expected = block * collective.outputBlocks(size);
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
    if (from.overlaps(to) && !isInPlace(collective, from, to, rank * block)) {
      throw new IllegalArgumentException(
          "in and out overlap: in="
              + in
              + ", out="
              + out
              + ", rank="
              + rank
              + "; give separate buffers"
              + (collective == Collective.ALL_TO_ALL
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
      Collective collective, AbstractDeviceBuffer in, AbstractDeviceBuffer out, long first) {
    return switch (collective) {
      case ALL_GATHER, GATHER -> in.isPartOf(out, first);
      case REDUCE_SCATTER, SCATTER -> out.isPartOf(in, first);
      case REDUCE -> in.isPartOf(out, 0);
      case ALL_TO_ALL -> false;
    };
  }
}

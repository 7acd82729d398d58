package org.gradientsync.core.sync;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;

/** Checks what a sync's call asks for before anything is sent. */
final class CollectiveArguments {
  private final RankMap ranks;
  private final BackendDevice device;

  /**
   * @param device the sync's, to which all buffers must belong
   */
  CollectiveArguments(RankMap ranks, BackendDevice device) {
    this.ranks = ranks;
    this.device = device;
  }

  /** Throws if a call cannot be made. */
  void require(CollectiveCall call) {
    if (call.kind().isMessage()) {
      ranks.requireOther(call.root(), "peer");
    } else if (call.kind().hasRoot()) {
      ranks.require(call.root(), "root");
    }
    requireBuffers(call);
    if (call.op() != null) {
      call.op().requireDefinedFor(call.in().type());
    }
  }

  /**
   * Throws if buffers are closed or belong to another sync, types or counts do not match, or the
   * buffers overlap in a way that the collective does not allow.
   */
  void requireBuffers(CollectiveCall call) {
    requireOwn(call.in());
    requireOwn(call.out());
    Kind kind = call.kind();
    DeviceBuffer in = call.in();
    DeviceBuffer out = call.out();
    if (kind == Kind.ALL_REDUCE || kind == Kind.BROADCAST || kind.isMessage()) {
      return; // one buffer
    }
    requireBlocks("in", in, kind.inputBlocks(ranks.size()));
    requireBlocks("out", out, kind.outputBlocks(ranks.size()));
    if (in == null || out == null) {
      return;
    }
    long block = call.blockCount(ranks.size());
    long expected = block * kind.outputBlocks(ranks.size());
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
              + ranks.size()
              + ", rank="
              + ranks.rank());
    }
    AbstractDeviceBuffer from = (AbstractDeviceBuffer) in;
    AbstractDeviceBuffer to = (AbstractDeviceBuffer) out;
    if (from.overlaps(to) && !isInPlace(kind, from, to, ranks.rank() * block)) {
      throw new IllegalArgumentException(
          "in and out overlap: in="
              + in
              + ", out="
              + out
              + ", rank="
              + ranks.rank()
              + "; give separate buffers"
              + (kind == Kind.ALL_TO_ALL
                  ? ""
                  : ", or this rank's block of the larger buffer as the other one"));
    }
  }

  private void requireOwn(DeviceBuffer buffer) {
    if (buffer == null) {
      return;
    }
    if (buffer.device() != device) {
      throw new IllegalArgumentException(
          "buffer belongs to another sync: buffer=" + buffer + ", rank=" + ranks.rank());
    }
    if (buffer.isClosed()) {
      throw new IllegalStateException(
          "buffer is closed: buffer=" + buffer + ", rank=" + ranks.rank());
    }
  }

  private void requireBlocks(String role, DeviceBuffer buffer, int blocks) {
    if (buffer != null && buffer.count() % blocks != 0) {
      throw new IllegalArgumentException(
          "count is not a multiple of the number of ranks: "
              + role
              + "="
              + buffer
              + ", size="
              + ranks.size()
              + ", rank="
              + ranks.rank());
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

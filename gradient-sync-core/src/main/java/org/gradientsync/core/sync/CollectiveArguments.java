package org.gradientsync.core.sync;

import java.util.Arrays;
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
    if (call.hasCounts()) {
      requireCounts(call);
    } else {
      requireBlocks("in", in, kind.inputBlocks(ranks.size()));
      requireBlocks("out", out, kind.outputBlocks(ranks.size()));
    }
    if (in == null || out == null) {
      return;
    }
    long expected =
        call.hasCounts()
            ? out.count() // which has been checked
            : call.blockCount(ranks.size()) * kind.outputBlocks(ranks.size());
    if (in.type() != out.type() || out.count() != expected) {
      throw new IllegalArgumentException(
          "types or counts do not match: in=%s, out=%s, expected=%s[%s], size=%s, rank=%s"
              .formatted(in, out, in.type(), expected, ranks.size(), ranks.rank()));
    }
    AbstractDeviceBuffer from = (AbstractDeviceBuffer) in;
    AbstractDeviceBuffer to = (AbstractDeviceBuffer) out;
    if (from.overlaps(to) && !isInPlace(kind, from, to, ownBlock(call))) {
      throw new IllegalArgumentException(
          "in and out overlap: in=%s, out=%s, rank=%s; give separate buffers%s"
              .formatted(
                  in,
                  out,
                  ranks.rank(),
                  kind == Kind.ALL_TO_ALL
                      ? ""
                      : ", or this rank's block of the larger buffer as the other one"));
    }
  }

  /** Where this rank's block begins in the larger one of two buffers. */
  private long ownBlock(CollectiveCall call) {
    if (!call.hasCounts()) {
      return ranks.rank() * call.blockCount(ranks.size());
    }
    long[] counts = call.inCounts() != null ? call.inCounts() : call.outCounts();
    return Arrays.stream(counts, 0, ranks.rank()).sum();
  }

  /** Throws if counts do not match the buffers. */
  private void requireCounts(CollectiveCall call) {
    if (call.in() != null) {
      requireCount("in", call.in(), call.inCounts(), call.outCounts());
    }
    if (call.out() != null) {
      requireCount("out", call.out(), call.outCounts(), call.inCounts());
    } else {
      total(call.outCounts());
    }
    if (call.kind() == Kind.ALL_TO_ALL
        && call.inCounts()[ranks.rank()] != call.outCounts()[ranks.rank()]) {
      throw new IllegalArgumentException(
          "this rank's part for itself has two counts: in=%s, out=%s, rank=%s"
              .formatted(
                  call.inCounts()[ranks.rank()], call.outCounts()[ranks.rank()], ranks.rank()));
    }
  }

  /**
   * Throws unless a buffer has as many elements as its counts say.
   *
   * @param counts of the buffer's blocks; null if it is this rank's block of the other buffer
   */
  private void requireCount(String role, DeviceBuffer buffer, long[] counts, long[] others) {
    long total = total(counts == null ? others : counts);
    long expected = counts == null ? others[ranks.rank()] : total;
    if (buffer.count() != expected) {
      throw new IllegalArgumentException(
          "counts do not match the buffer: %s=%s, expected=%s, counts=%s, rank=%s"
              .formatted(
                  role,
                  buffer,
                  expected,
                  Arrays.toString(counts == null ? others : counts),
                  ranks.rank()));
    }
  }

  private long total(long[] counts) {
    boolean valid = counts.length == ranks.size();
    long total = 0;
    for (long count : counts) {
      total += count;
      valid &= count >= 0 && total >= 0;
    }
    if (!valid) {
      throw new IllegalArgumentException(
          ("counts must be one for each rank, none negative, and their sum fit a long:"
                  + " counts=%s, size=%s, rank=%s")
              .formatted(Arrays.toString(counts), ranks.size(), ranks.rank()));
    }
    return total;
  }

  /** Throws if a buffer belongs to another sync, or is closed. There may be none. */
  void requireOwn(DeviceBuffer buffer) {
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
          "count is not a multiple of the number of ranks: %s=%s, size=%s, rank=%s"
              .formatted(role, buffer, ranks.size(), ranks.rank()));
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

package org.gradientsync.cuda.internal.nccl;

import java.util.concurrent.locks.LockSupport;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/**
 * The calls that have been enqueued and have not ended, in their order. NCCL runs the calls of one
 * communicator one after the other, whatever their streams. One thread at a time makes calls, and
 * any thread may look. Allocates nothing once it has been round.
 */
final class NcclProgress implements AutoCloseable {
  /** As many calls may be unfinished; then the host waits. */
  static final int CALLS = 128;

  private final RankGroup group;
  private final Gpu gpu;
  private final NcclCall[] ring = new NcclCall[CALLS];
  private final Object popping = new Object();
  private volatile long first; // the oldest call that is not known to have ended
  private volatile long end; // the number of calls that have begun

  NcclProgress(RankGroup group, Gpu gpu) {
    this.group = group;
    this.gpu = gpu;
  }

  /**
   * Begins a call on a stream.
   *
   * @param onWait called while too many calls are unfinished; throws to give up
   */
  void begin(
      String name,
      DataType type,
      long count,
      ReduceOp op,
      int root,
      GpuStream stream,
      Runnable onWait) {
    while (end - first == CALLS && !settle()) {
      onWait.run();
      LockSupport.parkNanos(50_000);
    }
    int at = (int) (end % CALLS);
    if (ring[at] == null) {
      ring[at] = new NcclCall(gpu);
    }
    ring[at].begin(name, type, count, op, root);
    stream.record(ring[at].started());
    end++; // only this thread writes it
    gpu.gate().pass();
  }

  /** Says that the call has been enqueued. */
  void enqueued(GpuStream stream) {
    NcclCall call = ring[(int) ((end - 1) % CALLS)];
    stream.record(call.ended());
    group.deviceCalls().enqueuedMessage();
    call.enqueued(group.deviceCalls().pending());
  }

  /** Forgets calls that have ended. Returns whether any had. */
  boolean settle() {
    synchronized (popping) {
      long before = first;
      while (first < end) {
        NcclCall call = ring[(int) (first % CALLS)];
        if (!call.isDone()) {
          break;
        }
        group.deviceCalls().done(call.number());
        first++;
      }
      return first > before;
    }
  }

  /** The oldest call that has not ended, or null. */
  NcclCall oldest() {
    settle();
    synchronized (popping) {
      return first < end ? ring[(int) (first % CALLS)] : null;
    }
  }

  long unfinished() {
    return end - first;
  }

  /** Waits for all calls that were enqueued. Watchdogs may throw meanwhile. */
  void await() {
    for (long call = end - 1; call >= first; call--) {
      NcclCall last = ring[(int) (call % CALLS)];
      if (last.isEnqueued()) {
        gpu.waits().awaitEnd(null, last.ended().handle());
        return;
      }
    }
  }

  @Override
  public void close() {
    Resources.closeAll(ring);
  }
}

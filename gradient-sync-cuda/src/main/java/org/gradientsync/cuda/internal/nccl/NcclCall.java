package org.gradientsync.cuda.internal.nccl;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/** A call that has been enqueued, or is about to be. The objects are used again and again. */
final class NcclCall implements AutoCloseable {
  private final GpuEvent started;
  private final GpuEvent ended;
  private String name;
  private DataType type;
  private long count;
  private ReduceOp op; // or null
  private int root;
  private long since;
  private boolean running;
  private volatile boolean enqueued;
  private volatile long number;

  NcclCall(Gpu gpu) {
    started = GpuEvent.create(gpu, false);
    try {
      ended = GpuEvent.create(gpu, false);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, started);
      throw e;
    }
  }

  /**
   * Begins a call.
   *
   * @param newOp or null
   * @param newRoot the root or the other rank, or {@link RankGroup#NO_RANK}
   */
  void begin(String newName, DataType newType, long newCount, ReduceOp newOp, int newRoot) {
    name = newName;
    type = newType;
    count = newCount;
    op = newOp;
    root = newRoot;
    since = System.nanoTime();
    running = false;
    enqueued = false;
  }

  /** Says that the call and its last event have been enqueued. */
  void enqueued(long newNumber) {
    number = newNumber;
    enqueued = true;
  }

  /** The event before the call's work. */
  GpuEvent started() {
    return started;
  }

  /** The event behind the call's work. */
  GpuEvent ended() {
    return ended;
  }

  /** Its number in the group's record; see {@link org.gradientsync.spi.DeviceCalls#pending}. */
  long number() {
    return number;
  }

  boolean isEnqueued() {
    return enqueued;
  }

  boolean isDone() {
    return enqueued && ended.isDone();
  }

  /**
   * {@return for how many nanoseconds the oldest unfinished call has been running, in NCCL, or on
   * the device after the stream's earlier work; 0 if the stream has not come to it yet}
   */
  long runs(long now) {
    if (!enqueued) {
      return now - since;
    }
    if (!running) {
      if (!started.isDone()) {
        return 0;
      }
      running = true;
      since = now;
    }
    return now - since;
  }

  /** For example {@code allReduce(FLOAT32[1000], AVERAGE)}. */
  String describe() {
    return name
        + "("
        + type
        + "["
        + count
        + "]"
        + (op == null ? "" : ", " + op)
        + (root == RankGroup.NO_RANK ? "" : ", root=" + root)
        + ")";
  }

  @Override
  public void close() {
    Resources.closeAll(started, ended);
  }
}

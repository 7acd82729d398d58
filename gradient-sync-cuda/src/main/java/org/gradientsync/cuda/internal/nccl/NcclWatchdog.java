package org.gradientsync.cuda.internal.nccl;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.gradientsync.DeviceException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.cuda.internal.driver.DeviceWatch;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks ten times a second, on a thread of its own, whether the calls on the device can still end:
 * NCCL's kernels wait for other ranks without a time-out. If one cannot, it aborts the
 * communicator, which ends the kernels with garbage as their results, and the next call or wait of
 * this rank throws.
 */
final class NcclWatchdog implements DeviceWatch, AutoCloseable {
  private static final long PERIOD_NANOS = 100_000_000;

  /** How long a call may run after a rank that takes part has died, left or failed. */
  private static final long GRACE_NANOS = 1_000_000_000;

  private static final Logger log = LoggerFactory.getLogger(NcclWatchdog.class);

  private final RankGroup group;
  private final Gpu gpu;
  private final Nccl nccl;
  private final NcclComm comm;
  private final NcclProgress progress;
  private final Runnable onHost = this::check;
  private final BooleanSupplier isIdle;
  private final Thread thread;
  private volatile boolean closed;
  private volatile Failure failure; // or null
  private volatile boolean told;
  private NcclCall warned;

  /** What ended the communicator. */
  private record Failure(boolean timedOut, String text) {}

  NcclWatchdog(RankGroup group, Gpu gpu, Nccl nccl, NcclComm comm, NcclProgress progress) {
    this.group = group;
    this.gpu = gpu;
    this.nccl = nccl;
    this.comm = comm;
    this.progress = progress;
    isIdle = this::isIdle;
    thread = new Thread(this::run, "gradient-sync-nccl");
    thread.setDaemon(true);
  }

  void start() {
    group.addCheck(onHost);
    gpu.waits().watch(this);
    gpu.gate().add(isIdle);
    thread.start();
  }

  /**
   * Throws the failure that has been found, once; after that the group is broken, and each call
   * throws. Runs before each call, and while and after the host waits.
   */
  void check() {
    if (failure == null || told) {
      return;
    }
    synchronized (group) {
      if (!told) {
        told = true;
        throw failure.timedOut
            ? group.timedOut(failure.text)
            : group.broken("nccl has stopped: " + failure.text, null);
      }
    }
  }

  private boolean isIdle() {
    try {
      return progress.oldest() == null;
    } catch (DeviceException e) {
      return true; // nothing runs on a GPU that has failed
    }
  }

  /** Aborts what runs on the device, because this rank's thread has found a failure. */
  void giveUp() {
    told = true;
    comm.abort();
  }

  /** For reports. */
  String text() {
    return failure == null ? "none" : failure.text + (told ? ", thrown" : "");
  }

  @Override
  public void whileWaiting(long nanos) {
    check();
    if (!told && Thread.currentThread().isInterrupted() && progress.unfinished() > 0) {
      giveUp();
      synchronized (group) {
        throw group.broken("interrupted while waiting for the GPU", null);
      }
    }
  }

  @Override
  public void afterWaiting() {
    check();
  }

  private void run() {
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      if (closed || failure != null || told) {
        continue;
      }
      try {
        look(System.nanoTime());
      } catch (RuntimeException e) {
        fail(false, e.getMessage());
      } catch (OutOfMemoryError e) {
        // there may be memory in the next period
      }
    }
  }

  private void look(long now) {
    gpu.makeCurrent();
    NcclCall call = progress.oldest();
    if (call == null) {
      return;
    }
    int code = comm.failure();
    if (code != NcclResult.SUCCESS) {
      fail(false, NcclResult.text(nccl, code) + ", call=" + call.describe());
      return;
    }
    long runs = call.runs(now);
    if (runs > group.timeouts().timeoutNanos()) {
      fail(
          true,
          call.describe()
              + (call.isEnqueued() ? " has not ended on the GPU" : " has not come back from NCCL")
              + ", waited="
              + Amounts.time(group.timeouts().timeout()));
      return;
    }
    if (runs > GRACE_NANOS) {
      lookForLost(call);
    }
    if (runs > group.timeouts().lateNanos() && warned != call) {
      warned = call;
      log.warn(
          "rank {} has waited {} for NCCL on its GPU: call={}",
          group.rank(),
          Amounts.time(group.timeouts().late()),
          call.describe());
    } else if (runs <= group.timeouts().lateNanos()) {
      warned = null;
    }
  }

  private void lookForLost(NcclCall call) {
    for (int peer = 0; peer < group.size(); peer++) {
      String left = peer == group.rank() ? "" : group.whyLeft(peer);
      String why = !group.isAlive(peer) ? " has died" : left.isEmpty() ? "" : " has left: " + left;
      if (why.isEmpty() && peer != group.rank() && group.hasGivenUp(peer)) {
        String reason = group.whyGivenUp(peer);
        why = reason.isEmpty() ? "" : " gave up: " + reason;
      }
      if (!why.isEmpty()) {
        fail(false, group.name(peer) + why + ", call=" + call.describe());
        return;
      }
    }
  }

  private void fail(boolean timedOut, String text) {
    failure = new Failure(timedOut, text);
    log.debug("rank {} aborts NCCL: {}", group.rank(), text);
    comm.abort();
  }

  @Override
  public void close() {
    closed = true;
    group.removeCheck(onHost);
    gpu.waits().unwatch(this);
    gpu.gate().remove(isIdle);
    LockSupport.unpark(thread);
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

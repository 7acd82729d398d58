package org.gradientsync.cuda.internal.nccl;

import java.util.concurrent.locks.LockSupport;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rank's communicator. One thread at a time makes calls, between {@link #enter} and {@link
 * #leave}; any thread may abort. NCCL may wait for the other ranks while it frees a communicator,
 * so another thread does that.
 */
final class NcclComm {
  private static final long LEAVE_NANOS = 5_000_000_000L;
  private static final long END_MILLIS = 10_000;
  private static final Logger log = LoggerFactory.getLogger(NcclComm.class);

  private final Nccl nccl;
  private final Gpu gpu;
  private final long handle;
  private final int rank;
  private final int[] error = new int[1];
  private volatile boolean inCall;
  private volatile boolean asks;
  private volatile boolean ended;
  private Thread ending; // or null

  NcclComm(Nccl nccl, Gpu gpu, long handle, int rank) {
    this.nccl = nccl;
    this.gpu = gpu;
    this.handle = handle;
    this.rank = rank;
  }

  /**
   * Begins a call.
   *
   * @return the communicator for the library's functions
   * @throws DeviceException if the communicator was aborted
   */
  long enter() {
    inCall = true;
    if (ended) {
      inCall = false;
      throw new DeviceException(
          "the communicator of NCCL was aborted: rank=" + rank, NcclResult.ABORTED);
    }
    return handle;
  }

  void leave() {
    inCall = false;
  }

  /**
   * {@return the code with which a call failed after it was enqueued, or {@link
   * NcclResult#SUCCESS}} Only one thread may ask.
   */
  int failure() {
    asks = true;
    try {
      if (ended) {
        return NcclResult.SUCCESS;
      }
      error[0] = NcclResult.SUCCESS;
      int code = nccl.asyncError(handle, error);
      int found = code == NcclResult.SUCCESS ? error[0] : code;
      return found == NcclResult.IN_PROGRESS ? NcclResult.SUCCESS : found;
    } finally {
      asks = false;
    }
  }

  /** Ends what runs on the device, unless the communicator has ended. Waits for nobody. */
  void abort() {
    end(true);
  }

  /** Frees the communicator, whose work is done. Waits for a while. */
  void close() {
    end(false);
    Thread thread = ending();
    try {
      thread.join(END_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      log.warn("rank {} leaves a communicator to NCCL that it has not freed yet", rank);
    }
  }

  private synchronized Thread ending() {
    return ending;
  }

  private synchronized void end(boolean aborts) {
    if (ending != null) {
      return;
    }
    ended = true;
    ending = new Thread(() -> free(aborts), "gradient-sync-nccl-end");
    ending.setDaemon(true);
    ending.start();
  }

  private void free(boolean aborts) {
    long start = System.nanoTime();
    while ((inCall || asks) && System.nanoTime() - start < LEAVE_NANOS) {
      LockSupport.parkNanos(1_000_000); // an abort ends a call that hangs
    }
    try {
      gpu.makeCurrent();
      int code = aborts ? nccl.abort(handle) : nccl.destroy(handle);
      NcclResult.check(nccl, code, aborts ? "ncclCommAbort" : "ncclCommDestroy");
    } catch (RuntimeException e) {
      log.debug("rank {} cannot free a communicator", rank, e);
    }
  }
}

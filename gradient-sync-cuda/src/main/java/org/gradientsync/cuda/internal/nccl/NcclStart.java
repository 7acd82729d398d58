package org.gradientsync.cuda.internal.nccl;

import org.gradientsync.DeviceException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates one rank's communicator, on a thread of its own: NCCL waits for all ranks without a
 * time-out. (In its mode that does not block, newer versions start a thread for each later call.)
 * If the time is over, the thread stays until NCCL returns, and aborts what it gets.
 */
final class NcclStart implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(NcclStart.class);

  private final Nccl nccl;
  private final Gpu gpu;
  private final byte[] id;
  private final int rank;
  private final int ranks;
  private boolean abandoned;
  private NcclComm comm; // or null
  private String failure = "";

  /**
   * @param id from rank 0
   */
  NcclStart(Nccl nccl, Gpu gpu, byte[] id, int rank, int ranks) {
    this.nccl = nccl;
    this.gpu = gpu;
    this.id = id;
    this.rank = rank;
    this.ranks = ranks;
  }

  /** Starts, and waits for half of the group's time-out: agreeing on the outcome takes the rest. */
  void await(RankGroup group) {
    Thread thread = new Thread(this, "gradient-sync-nccl-start");
    thread.setDaemon(true);
    thread.start();
    long start = System.nanoTime();
    try {
      while (thread.isAlive()) {
        thread.join(50);
        long waited = System.nanoTime() - start;
        if (!thread.isAlive()) {
          return;
        }
        for (int peer = 0; peer < ranks; peer++) {
          if (!group.isAlive(peer)) {
            abandon(group.name(peer) + " has died while NCCL connected the ranks");
            return;
          }
        }
        if (waited > group.timeouts().timeoutNanos() / 2) {
          abandon(
              ("ncclCommInitRank has not connected the ranks: rank=%s, ranks=%s, waited=%s;"
                      + " NCCL_DEBUG=INFO shows what it waits for")
                  .formatted(rank, ranks, Amounts.time(waited)));
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      abandon("interrupted while NCCL connected the ranks");
    }
  }

  /** The communicator, or null. */
  synchronized NcclComm comm() {
    return comm;
  }

  /** Why there is no communicator, or an empty text. */
  synchronized String failure() {
    return failure;
  }

  private synchronized void abandon(String reason) {
    if (comm == null && failure.isEmpty()) {
      abandoned = true;
      failure = reason;
    }
  }

  @Override
  public void run() {
    String reason = "";
    NcclComm made = null;
    try {
      gpu.makeCurrent();
      long[] handle = new long[1];
      NcclResult.check(nccl, nccl.init(handle, ranks, id, rank), "ncclCommInitRank");
      made = new NcclComm(nccl, gpu, handle[0], rank);
    } catch (DeviceException e) {
      reason = e.getMessage();
    } catch (RuntimeException | Error e) {
      reason = "this NCCL cannot be used: " + e;
    }
    synchronized (this) {
      if (!abandoned) {
        comm = made;
        failure = reason;
        return;
      }
    }
    log.debug("rank {} comes too late with a communicator: {}", rank, reason);
    if (made != null) {
      made.abort();
    }
  }
}

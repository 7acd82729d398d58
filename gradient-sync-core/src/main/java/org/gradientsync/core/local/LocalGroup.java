package org.gradientsync.core.local;

import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;

/** The state that the ranks of one {@link LocalRanks#run} share. */
public final class LocalGroup {
  /** The value that stands for the thread that waits for the ranks. */
  public static final int CALLER = -1;

  private final Mailbox[][] mailboxes;
  private int failed; // a rank or CALLER
  private volatile Throwable cause; // or null
  private volatile boolean ended; // true once the failed rank has closed its sync

  public LocalGroup(int ranks) {
    mailboxes = new Mailbox[ranks][ranks];
    for (Mailbox[] row : mailboxes) {
      for (int i = 0; i < ranks; i++) {
        row[i] = new Mailbox(this);
      }
    }
  }

  int size() {
    return mailboxes.length;
  }

  Mailbox mailbox(int sender, int receiver) {
    return mailboxes[sender][receiver];
  }

  /**
   * Records a failure; only the first one counts. Allocates nothing, because the failure may be
   * that memory is exhausted.
   *
   * @return whether the first failure is that of the given rank
   */
  public synchronized boolean recordFailure(int rank, Throwable thrown) {
    if (cause == null) {
      failed = rank;
      cause = thrown;
    }
    return failed == rank;
  }

  /** The first failure, or null. */
  public Throwable cause() {
    return cause;
  }

  /** Creates the exception for the thread that waits for the ranks. */
  public GradientSyncException failure() {
    return failed == CALLER
        ? new GradientSyncException("the thread that called LocalRanks.run was interrupted", cause)
        : new GradientSyncException("rank " + failed + " failed: " + cause, cause);
  }

  /** Makes all ranks that wait throw the recorded failure. */
  public void end() {
    ended = true;
  }

  /**
   * Throws if the run has failed. Called by a rank that waits for another.
   *
   * @throws RankLostException if any rank has failed, even if it is not the awaited one
   */
  void requireAlive() {
    if (ended) {
      throw new RankLostException(failure().getMessage(), cause, true);
    }
  }
}

package org.gradientsync.internal.local;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;

/** What the ranks of one {@link LocalRanks#run} share. */
public final class LocalGroup {
  /** Instead of a rank: the thread that waits for all of them. */
  public static final int CALLER = -1;

  private final Mailbox[][] mailboxes;
  private final ConcurrentMap<Object, Object> common = new ConcurrentHashMap<>();
  private int failed; // a rank or CALLER
  private volatile Throwable cause; // or null
  private volatile boolean over; // all are told, when the one that failed has closed its sync

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

  /** What the ranks leave for each other without a message. */
  ConcurrentMap<Object, Object> common() {
    return common;
  }

  Mailbox mailbox(int sender, int receiver) {
    return mailboxes[sender][receiver];
  }

  /**
   * Notes a failure, of which the first one counts. Takes no memory: there may be none left.
   *
   * @return whether it is this one's that counts
   */
  public synchronized boolean note(int who, Throwable thrown) {
    if (cause == null) {
      failed = who;
      cause = thrown;
    }
    return failed == who;
  }

  /** What was thrown first, or null. */
  public Throwable cause() {
    return cause;
  }

  /** What has been noted, for whoever waits for the ranks. */
  public GradientSyncException failure() {
    return failed == CALLER
        ? new GradientSyncException("the thread that called LocalRanks.run was interrupted", cause)
        : new GradientSyncException("rank " + failed + " failed: " + cause, cause);
  }

  /** Ends the waiting of all, because of what has been noted. */
  public void end() {
    over = true;
  }

  /**
   * Called by a rank that waits for another.
   *
   * @throws RankLostException if anything has failed: the job is over, whoever it waits for
   */
  void requireAlive() {
    if (over) {
      throw new RankLostException(failure().getMessage(), cause);
    }
  }
}

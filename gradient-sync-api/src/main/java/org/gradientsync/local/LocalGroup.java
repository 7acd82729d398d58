package org.gradientsync.local;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.gradientsync.RankLostException;

/** What the ranks of one {@link LocalRanks#run} share. */
final class LocalGroup {
  private final Mailbox[][] mailboxes;
  private final AtomicReferenceArray<Throwable> failures;
  private volatile boolean anyFailed;

  LocalGroup(int ranks) {
    mailboxes = new Mailbox[ranks][ranks];
    for (Mailbox[] row : mailboxes) {
      for (int i = 0; i < ranks; i++) {
        row[i] = new Mailbox();
      }
    }
    failures = new AtomicReferenceArray<>(ranks);
  }

  int size() {
    return mailboxes.length;
  }

  Mailbox mailbox(int sender, int receiver) {
    return mailboxes[sender][receiver];
  }

  /** Ends the waiting of the others. */
  void fail(int rank, Throwable cause) {
    failures.set(rank, cause);
    anyFailed = true;
  }

  /**
   * Called by a rank that waits for another.
   *
   * @throws RankLostException if any rank has failed: the job is over, whoever it waits for
   */
  void requireAlive(int waitedFor) {
    if (!anyFailed) {
      return;
    }
    for (int rank = 0; rank < failures.length(); rank++) {
      Throwable failure = failures.get(rank);
      if (failure != null) {
        throw new RankLostException("rank " + rank + " failed: " + failure, failure);
      }
    }
  }
}

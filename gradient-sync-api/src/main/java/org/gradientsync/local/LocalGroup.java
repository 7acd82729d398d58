package org.gradientsync.local;

import org.gradientsync.RankLostException;

/** What the ranks of one {@link LocalRanks#run} share. */
final class LocalGroup {
  /** Instead of a rank: the thread that waits for all of them. */
  static final int CALLER = -1;

  private final Mailbox[][] mailboxes;
  private int failed; // a rank or CALLER
  private volatile Throwable cause; // or null

  LocalGroup(int ranks) {
    mailboxes = new Mailbox[ranks][ranks];
    for (Mailbox[] row : mailboxes) {
      for (int i = 0; i < ranks; i++) {
        row[i] = new Mailbox();
      }
    }
  }

  int size() {
    return mailboxes.length;
  }

  Mailbox mailbox(int sender, int receiver) {
    return mailboxes[sender][receiver];
  }

  /** Ends the waiting of all; the first failure counts. Takes no memory: there may be none left. */
  synchronized void fail(int who, Throwable thrown) {
    if (cause == null) {
      failed = who;
      cause = thrown;
    }
  }

  /**
   * Called by a rank that waits for another.
   *
   * @throws RankLostException if anything has failed: the job is over, whoever it waits for
   */
  void requireAlive() {
    Throwable thrown = cause;
    if (thrown != null) {
      throw new RankLostException(describe(failed, thrown), thrown);
    }
  }

  /** Who has failed, and how. */
  static String describe(int who, Throwable thrown) {
    return who == CALLER
        ? "the thread that called LocalRanks.run was interrupted"
        : "rank " + who + " failed: " + thrown;
  }
}

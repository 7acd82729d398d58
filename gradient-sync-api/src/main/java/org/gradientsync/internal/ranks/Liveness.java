package org.gradientsync.internal.ranks;

import org.gradientsync.GradientSyncException;

/**
 * Which ranks of a group are still there, as far as this one can see or has been told, and why the
 * others are not. Called by any thread; takes no group's lock.
 */
public final class Liveness {
  private final RankMap ranks;
  private final JobLiveness job;
  private final DepartureNotices departures;

  public Liveness(RankMap ranks, JobLiveness job, DepartureNotices departures) {
    this.ranks = ranks;
    this.job = job;
    this.departures = departures;
  }

  /** Whether a rank is not known to have died. */
  public boolean isAlive(int peer) {
    return job.isAlive(ranks.worldRank(peer));
  }

  /** Whether no rank is known to have died. */
  public boolean isComplete() {
    boolean complete = true;
    for (int peer = 0; peer < ranks.size(); peer++) {
      complete &= isAlive(peer);
    }
    return complete;
  }

  /** Remembers what ranks of another node have seen: that one of them has died. */
  public void noteDeath(int peer) {
    job.noteDeath(ranks.worldRank(peer));
  }

  /** Whether another rank is known to have died, and has sent no departure notice. */
  public boolean hasDiedSilently(int peer) {
    return peer != ranks.rank() && !isAlive(peer) && !departures.hasLeft(peer);
  }

  /** Whether a rank has died, or has said what ended it: it hears nothing any more. */
  public boolean isGone(int peer) {
    return job.isGone(ranks.worldRank(peer)) || !departures.reason(peer).isEmpty();
  }

  /** Whether a rank has left or is gone, or may be. */
  public boolean isUnreachable(int peer) {
    try {
      return departures.hasLeft(peer) || isGone(peer);
    } catch (GradientSyncException e) {
      return true;
    }
  }

  /** Why a rank has left, or an empty text if it has not, or has said why it gave up before. */
  public String whyLeft(int peer) {
    String reason = departures.reason(peer);
    if (reason.isEmpty()) {
      reason = job.reasonOf(ranks.worldRank(peer));
    }
    boolean silent =
        reason.isEmpty() && departures.hasLeft(peer) && departures.whyGivenUp(peer).isEmpty();
    return silent ? departures.departure(peer).text() : reason;
  }

  /** Which rank has said what ended it, and what, or an empty text. */
  public String endedBy() {
    for (int peer = 0; peer < ranks.size(); peer++) {
      String reason = departures.reason(peer);
      if (!reason.isEmpty()) {
        return ranks.name(peer) + ": " + reason;
      }
    }
    return "";
  }
}

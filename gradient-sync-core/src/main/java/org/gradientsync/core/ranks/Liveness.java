package org.gradientsync.core.ranks;

import java.util.List;
import org.gradientsync.GradientSyncException;

/**
 * Which ranks of a group are alive, as far as this rank can see or was notified, and why the others
 * left. Any thread may call this; it takes no group's lock.
 */
public record Liveness(RankMap ranks, JobLiveness job, DepartureNotices departures) {
  public boolean isAlive(int peer) {
    return job.isAlive(ranks.worldRank(peer));
  }

  /** Whether no rank is known to have died, apart from those that the job has left behind. */
  public boolean isComplete() {
    return ranks.all().stream()
        .allMatch(peer -> isAlive(peer) || job.isLeftBehind(ranks.worldRank(peer)));
  }

  /** The first other rank that has died without a departure notice, or {@link RankMap#NO_RANK}. */
  public int diedSilently() {
    return ranks.all().stream()
        .filter(peer -> peer != ranks.rank() && !isAlive(peer) && !departures.hasLeft(peer))
        .findFirst()
        .orElse(RankMap.NO_RANK);
  }

  /** Whether a rank is not known to have ended, although it may count as dead. */
  public boolean mayLive(int peer) {
    return !isUnreachable(peer) || !isAlive(peer) && job.mayLive(ranks.worldRank(peer));
  }

  /** What has become of a rank that is not alive, for texts. */
  public String fate(int peer) {
    return job.fate(ranks.worldRank(peer));
  }

  /** Whether a rank has died, or has left with a reason, and so receives no more messages. */
  public boolean isGone(int peer) {
    return job.isGone(ranks.worldRank(peer)) || !departures.reason(peer).isEmpty();
  }

  /** Whether a rank has left or is gone; also true if that cannot be determined. */
  public boolean isUnreachable(int peer) {
    try {
      return departures.hasLeft(peer) || isGone(peer);
    } catch (GradientSyncException e) {
      return true;
    }
  }

  /** Why a rank left; empty if it has not, or has given the reason in a failure notice. */
  public String whyLeft(int peer) {
    String reason = departures.reason(peer);
    if (reason.isEmpty()) {
      reason = job.reasonOf(ranks.worldRank(peer));
    }
    boolean silent =
        reason.isEmpty() && departures.hasLeft(peer) && departures.whyGivenUp(peer).isEmpty();
    return silent ? departures.departure(peer).text() : reason;
  }

  /** The first rank that has left with a reason, a colon, and the reason; or an empty text. */
  public String endedBy() {
    return ranks.all().stream()
        .filter(peer -> !departures.reason(peer).isEmpty())
        .filter(peer -> !job.isLeftBehind(ranks.worldRank(peer)))
        .findFirst()
        .map(peer -> ranks.name(peer) + ": " + departures.reason(peer))
        .orElse("");
  }

  /** Whether a rank that has left with a reason has died since. */
  public boolean hasEnderDied() {
    return ranks.all().stream()
        .anyMatch(peer -> !departures.reason(peer).isEmpty() && !isAlive(peer));
  }

  /** The other ranks that have neither left nor died, as far as this rank knows. */
  public List<Integer> staying() {
    return ranks.all().stream()
        .filter(peer -> peer != ranks.rank() && !isUnreachable(peer))
        .toList();
  }
}

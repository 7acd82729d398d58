package org.gradientsync.core.ranks;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.spi.Transport;

/**
 * Which ranks of the job are alive, as far as this rank knows. Any thread may call this; it takes
 * no group's lock.
 */
public final class JobLiveness {
  private final Transport transport;
  private final Set<Integer> leftBehind = ConcurrentHashMap.newKeySet();
  private volatile DepartureNotices world; // null when the world is not open

  public JobLiveness(Transport transport) {
    this.transport = transport;
  }

  public void watchWorld(DepartureNotices notices) {
    world = notices;
  }

  public boolean isAlive(int worldRank) {
    return transport.isAlive(worldRank);
  }

  /** Whether a rank of the job is not known to have ended, although it may count as dead. */
  boolean mayLive(int worldRank) {
    return transport.mayLive(worldRank) && reasonOf(worldRank).isEmpty();
  }

  /** What has become of a rank of the job that is not alive, for texts. */
  String fate(int worldRank) {
    return mayLive(worldRank) ? transport.fate(worldRank) : "has died";
  }

  /** Whether a rank of the job has died, or has left the job with a reason. */
  public boolean isGone(int worldRank) {
    return !isAlive(worldRank) || !reasonOf(worldRank).isEmpty();
  }

  public boolean hasLeft(int worldRank) {
    DepartureNotices notices = world;
    return notices != null && notices.hasLeft(worldRank);
  }

  /** From now on a rank counts as if it had never been in the job. */
  public void leaveBehind(int worldRank) {
    leftBehind.add(worldRank);
  }

  boolean isLeftBehind(int worldRank) {
    return leftBehind.contains(worldRank);
  }

  /** The reason with which a rank left the job, or an empty text. */
  String reasonOf(int worldRank) {
    DepartureNotices notices = world;
    return notices == null ? "" : notices.reason(worldRank);
  }
}

package org.gradientsync.internal.ranks;

import java.util.BitSet;
import org.gradientsync.spi.Transport;

/**
 * Which ranks of the job are still there, as far as this one knows. For any thread; takes no
 * group's lock.
 */
public final class JobLiveness {
  private final Transport transport;
  private final BitSet dead = new BitSet();
  private volatile DepartureNotices world; // null when the world is not open

  public JobLiveness(Transport transport) {
    this.transport = transport;
  }

  /** Looks from now on at what the ranks say when they leave the world; null to end that. */
  public void watchWorld(DepartureNotices notices) {
    world = notices;
  }

  /** Whether a rank of the job is not known to have died. */
  boolean isAlive(int worldRank) {
    return transport.isAlive(worldRank) && !hasDied(worldRank);
  }

  /** Whether a rank of the job hears nothing any more. */
  public boolean isGone(int worldRank) {
    return !isAlive(worldRank) || !reasonOf(worldRank).isEmpty();
  }

  /** Remembers that a rank of the job has died. */
  synchronized void noteDeath(int worldRank) {
    dead.set(worldRank);
  }

  private synchronized boolean hasDied(int worldRank) {
    return dead.get(worldRank);
  }

  /** Why a rank has left the job, as it said itself, or an empty text. */
  String reasonOf(int worldRank) {
    DepartureNotices notices = world;
    return notices == null ? "" : notices.reason(worldRank);
  }
}

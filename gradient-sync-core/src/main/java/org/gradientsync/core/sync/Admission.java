package org.gradientsync.core.sync;

import org.gradientsync.GradientSync;

/** A sync whose job processes may join. */
public interface Admission {
  /** How many processes wait to join, as far as this rank knows: one rank counts them. */
  int newcomers();

  /** Whether this rank has joined a job that had started. */
  boolean hasJoined();

  /** Whether this rank was asked to stop. */
  boolean isStopRequested();

  /** Whether no calls can follow. */
  boolean isClosed();

  /**
   * Lets those that wait join. Collective, between steps. The sync is closed if it succeeds;
   * buffers live on.
   *
   * @return a sync of all ranks, with those of this one first; this one if nobody has come in time
   * @throws org.gradientsync.RankLostException if a rank of this sync is lost, or the others go on
   *     without this one: then this sync is closed
   */
  GradientSync admit();
}

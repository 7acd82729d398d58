package org.gradientsync.mpi.binding;

import java.util.BitSet;

/**
 * The ranks that MPI reports to have died, in a job whose other ranks live. Callers hold the job's
 * lock, except for {@link #has}.
 */
final class LostRanks {
  private static final int FAILED = 75; // MPI_ERR_PROC_FAILED: the peer has
  private static final int PENDING = 76; // MPI_ERR_PROC_FAILED_PENDING: one of any

  private final MpiComm world;
  private final boolean othersLive;
  private volatile BitSet dead = new BitSet(); // never changed, but replaced

  /**
   * @param othersLive whether MPI lets them; otherwise it reports no losses
   */
  LostRanks(MpiComm world, boolean othersLive) {
    this.world = world;
    this.othersLive = othersLive;
  }

  boolean letOthersLive() {
    return othersLive;
  }

  boolean has(int peer) {
    return dead.get(peer);
  }

  /** Whether the reason of a message's error is that ranks have died. */
  boolean caused(MpiFailure e) {
    return othersLive && (e.errorClass() == FAILED || e.errorClass() == PENDING);
  }

  /** Takes note of the ranks that have died, so that messages from any other rank go on. */
  void acknowledge() throws MpiFailure {
    dead = world.acknowledgeLosses();
  }

  /** Whether a message with this error has ended; otherwise it goes on, from any other rank. */
  static boolean isOver(MpiFailure e) {
    return e.errorClass() == FAILED;
  }
}

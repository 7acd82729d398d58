package org.gradientsync.core.local;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;

/** The state that the ranks of one {@link LocalRanks#run} share. */
public final class LocalGroup {
  /** The value that stands for the thread that waits for the ranks. */
  public static final int CALLER = -1;

  private final MatchingQueue[][] queues;
  private final Map<Long, ByteBuffer> shown = new ConcurrentHashMap<>();
  private final AtomicLong keys = new AtomicLong();
  private int failed; // a rank or CALLER
  private volatile Throwable cause; // or null
  private volatile boolean ended; // true once the failed rank has closed its sync
  private volatile boolean goesOn; // ranks that fail end no others any more
  private final AtomicIntegerArray left; // 1 for each rank whose thread has ended
  private final Throwable[] failures; // of each rank that failed since then, or null
  private final BitSet leftBehind = new BitSet();
  private final BitSet interrupted = new BitSet(); // by end()

  public LocalGroup(int ranks) {
    queues = new MatchingQueue[ranks][ranks];
    failures = new Throwable[ranks];
    left = new AtomicIntegerArray(ranks);
    for (MatchingQueue[] row : queues) {
      for (int i = 0; i < ranks; i++) {
        row[i] = new MatchingQueue(this);
      }
    }
  }

  int size() {
    return queues.length;
  }

  MatchingQueue queue(int sender, int receiver) {
    return queues[sender][receiver];
  }

  /** Shows memory to the other ranks. Returns the key with which they get it. */
  long show(ByteBuffer memory) {
    long key = keys.incrementAndGet();
    shown.put(key, memory);
    return key;
  }

  ByteBuffer shown(long key) {
    return shown.get(key);
  }

  void hide(long key) {
    shown.remove(key);
  }

  /**
   * Records a failure; only the first one counts, until ranks {@linkplain #goOnWithout go on}.
   * Allocates nothing, because the failure may be that memory is exhausted.
   *
   * @return whether it ends the other ranks: the first failure is that of the given rank
   */
  public synchronized boolean recordFailure(int rank, Throwable thrown) {
    if (rank != CALLER && failures[rank] == null) {
      failures[rank] = thrown;
    }
    if (goesOn && rank != CALLER) {
      return false;
    }
    if (cause == null) {
      failed = rank;
      cause = thrown;
    }
    return failed == rank;
  }

  /** The first failure, or null; also null after ranks have gone on without the one that failed. */
  public Throwable cause() {
    return cause;
  }

  /** Why a rank failed, or null. */
  public synchronized Throwable failure(int rank) {
    return failures[rank];
  }

  /**
   * From now on ranks that fail end no others, and those given are not missed. An interrupt that
   * signalled a failure to the calling rank is cleared.
   */
  synchronized void goOnWithout(int rank, List<Integer> lost) {
    if (cause != null && failed == CALLER) {
      requireAlive();
      return;
    }
    if (interrupted.get(rank)) {
      interrupted.clear(rank);
      Thread.interrupted();
    }
    goesOn = true;
    ended = false;
    cause = null;
    lost.forEach(leftBehind::set);
  }

  /** Records that a rank's thread ends. */
  public void leave(int rank) {
    left.set(rank, 1);
  }

  /** Whether a rank takes part. Always true in a job that ends with its first lost rank. */
  boolean isAlive(int rank) {
    return !goesOn || left.get(rank) == 0;
  }

  /** Whether the others have gone on without a rank. */
  public synchronized boolean isLeftBehind(int rank) {
    return leftBehind.get(rank);
  }

  /** Whether ranks have gone on without others. */
  public boolean hasGoneOn() {
    return goesOn;
  }

  /** Creates the exception for the thread that waits for the ranks. */
  public GradientSyncException failure() {
    return failed == CALLER
        ? new GradientSyncException("the thread that called LocalRanks.run was interrupted", cause)
        : new GradientSyncException("rank " + failed + " failed: " + cause, cause);
  }

  /** Makes all ranks that wait throw the recorded failure, and interrupts those that do not. */
  public synchronized void end(Thread[] all) {
    if (cause == null) {
      return; // the others have gone on already
    }
    ended = true;
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank] != Thread.currentThread()) {
        interrupted.set(rank);
        all[rank].interrupt();
      }
    }
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

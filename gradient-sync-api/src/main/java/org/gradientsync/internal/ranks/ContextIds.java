package org.gradientsync.internal.ranks;

import java.util.BitSet;

/**
 * Which tag ranges of a job are in use on this rank. Each group has one, so that its messages never
 * match another's. The ranks agree on the lowest one that is free on all of them; closing a group
 * is local, so the ranks may free them at different times.
 */
public final class ContextIds {
  /** How many groups can be open at once. */
  public static final int LIMIT = 1024;

  /** The tag range of the group of all ranks. */
  public static final int WORLD = 0;

  private final BitSet used = new BitSet(LIMIT);
  private long generation;

  public ContextIds() {
    used.set(WORLD);
  }

  /** A bit for each range in use, for sending to the other ranks. */
  public synchronized long[] used() {
    long[] words = new long[LIMIT / Long.SIZE];
    long[] set = used.toLongArray();
    System.arraycopy(set, 0, words, 0, set.length);
    return words;
  }

  /** Reserves a range, if it is not in use. */
  public synchronized boolean tryReserve(int context) {
    boolean free = !used.get(context);
    used.set(context);
    return free;
  }

  public synchronized void release(int context) {
    used.clear(context);
  }

  /** A number that no earlier group of this rank had. */
  public synchronized long generation() {
    return generation;
  }

  public synchronized void advanceTo(long newest) {
    generation = Math.max(generation, newest);
  }
}

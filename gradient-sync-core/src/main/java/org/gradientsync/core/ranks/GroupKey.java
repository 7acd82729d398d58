package org.gradientsync.core.ranks;

/**
 * Identifies a group on all of its ranks: by its tag range, which other groups may have used, and
 * may use on other ranks, and by a random number.
 */
public record GroupKey(int context, long id) {
  public static final GroupKey WORLD = new GroupKey(0, 0);

  public boolean isWorld() {
    return context == WORLD.context;
  }
}

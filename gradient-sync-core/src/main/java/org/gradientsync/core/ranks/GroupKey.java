package org.gradientsync.core.ranks;

/** A group on all of its ranks: its tag range, and a random number, as ranges are used again. */
public record GroupKey(int context, long id) {
  public static final GroupKey WORLD = new GroupKey(0, 0);

  public boolean isWorld() {
    return context == WORLD.context;
  }
}

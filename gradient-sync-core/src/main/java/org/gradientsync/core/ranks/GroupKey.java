package org.gradientsync.core.ranks;

/**
 * Identifies a group on all of its ranks.
 *
 * @param context the tag range, which other groups may have used, and may use on other ranks
 * @param id random; tells it from earlier owners of the tag range
 */
public record GroupKey(int context, long id) {
  /** The group of all ranks of the job. */
  public static final GroupKey WORLD = new GroupKey(0, 0);

  public boolean isWorld() {
    return context == WORLD.context;
  }
}

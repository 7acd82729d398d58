package org.gradientsync.core.diagnosis;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.core.ranks.GroupKey;

/**
 * The thread of this JVM that looks whether other processes request reports, because the ranks' own
 * threads may be stuck. It runs while there are groups to watch. Ranks of one JVM ask each other
 * directly.
 */
public final class Watch {
  private static final long PERIOD_NANOS = 250_000_000;
  private static final Map<GroupKey, Here> GROUPS = new ConcurrentHashMap<>();
  private static Thread thread;

  private Watch() {}

  /**
   * The ranks of a group that are threads of this JVM, and the first lines of their reports. So
   * their summary is complete even if no file can be written.
   */
  static final class Here {
    final Set<Reports> ranks = ConcurrentHashMap.newKeySet();
    final ConcurrentMap<Integer, String> lines = new ConcurrentHashMap<>();
  }

  public static synchronized void add(Reports reports) {
    reports.here = GROUPS.computeIfAbsent(reports.group.key(), key -> new Here());
    reports.here.ranks.add(reports);
    if (thread == null) {
      thread = new Thread(Watch::run, "gradient-sync-watch");
      thread.setDaemon(true);
      thread.start();
    }
  }

  /** From now on, the rank writes a report only if it requests one itself. */
  public static synchronized void remove(Reports reports) {
    reports.here.ranks.remove(reports);
    if (reports.here.ranks.isEmpty()) {
      GROUPS.remove(reports.group.key(), reports.here);
    }
  }

  private static void run() {
    while (!isOver()) {
      try {
        look();
      } catch (OutOfMemoryError e) {
        // also for the log; there may be memory in the next period
      }
      LockSupport.parkNanos(PERIOD_NANOS);
    }
  }

  private static synchronized boolean isOver() {
    if (GROUPS.isEmpty()) {
      thread = null;
      return true;
    }
    return false;
  }

  /** Answers requests. Returns for how many places it has looked: once for all groups of a job. */
  static int look() {
    Map<List<Path>, Boolean> asked = new HashMap<>();
    for (Here here : GROUPS.values()) {
      for (Reports reports : here.ranks) {
        ReportFolder folder = reports.folder;
        if (here.ranks.size() < reports.group.size() // some are in other processes
            && asked.computeIfAbsent(folder.places(), Watch::isAnyThere)
            && folder.where() != null) {
          reports.answer("");
        }
      }
    }
    return asked.size();
  }

  private static boolean isAnyThere(List<Path> places) {
    return places.stream().anyMatch(ReportFolder::isThere);
  }
}

package org.gradientsync.core.diagnosis;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.ranks.RankMap;

/**
 * What the ranks of one group that are threads of this JVM have reported. So their summary is
 * complete even if no file can be written.
 */
public final class LocalReports {
  private static final Map<Key, WeakReference<LocalReports>> GROUPS = new HashMap<>();

  private record Key(long group, int node) {}

  private final Map<Integer, String> lines = new ConcurrentHashMap<>();
  private final AtomicInteger summarizer = new AtomicInteger(RankMap.NO_RANK);
  private volatile boolean asked;

  /** Those of a process in which no rank has reported. */
  LocalReports() {}

  /**
   * The reports of a group.
   *
   * @param group its id, random
   * @param node the ranks' node: tests have several in one JVM
   * @return the same object for all of its ranks in this JVM
   */
  public static LocalReports of(long group, int node) {
    Key key = new Key(group, node);
    synchronized (GROUPS) {
      GROUPS.values().removeIf(reports -> reports.get() == null);
      WeakReference<LocalReports> known = GROUPS.get(key);
      LocalReports reports = known == null ? null : known.get();
      if (reports == null) {
        reports = new LocalReports();
        GROUPS.put(key, new WeakReference<>(reports));
      }
      return reports;
    }
  }

  void ask() {
    asked = true;
  }

  boolean isAsked() {
    return asked;
  }

  /** Adds the first line of a rank's report. */
  void put(int rank, String line) {
    lines.put(rank, line);
  }

  /** The first line of a rank's report, or null if it has not reported here. */
  String firstLine(int rank) {
    return lines.get(rank);
  }

  /** Assigns the summary to a rank, and returns whether no other one has it. */
  boolean leaveSummaryTo(int rank) {
    return summarizer.compareAndSet(RankMap.NO_RANK, rank);
  }

  /** The rank that has the summary, or {@link RankMap#NO_RANK}. */
  int summarizer() {
    return summarizer.get();
  }
}

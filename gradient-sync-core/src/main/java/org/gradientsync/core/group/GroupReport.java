package org.gradientsync.core.group;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import org.gradientsync.core.diagnosis.RankReport;
import org.gradientsync.core.diagnosis.WatchedGroup;

/** What a rank reports about one of its groups. Any thread may ask; takes no lock. */
final class GroupReport {
  private final Job job;
  private final WatchedGroup group;
  private final Supplier<String> waiting;
  private final List<Supplier<List<String>>> states = new CopyOnWriteArrayList<>();

  /**
   * @param waiting the rank that this one waits for, or an empty text
   */
  GroupReport(Job job, WatchedGroup group, Supplier<String> waiting) {
    this.job = job;
    this.group = group;
    this.waiting = waiting;
  }

  void add(Supplier<List<String>> state) {
    states.add(state);
  }

  List<String> of(String why) {
    List<Supplier<List<String>>> all = new ArrayList<>(states);
    all.addAll(job.statesOfOthers(group));
    String place = group.ranks().placeOf(group.rank());
    return RankReport.of(
        RankReport.summary(place, why, waiting.get(), group.calls(), group.calls().caller()),
        group.calls().lines(),
        all);
  }

  /** The lines about this group in the report of another one. */
  List<String> lines() {
    String waits = waiting.get();
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add(
        "communicator %s, rank %s of %s: %s"
            .formatted(
                group.key().context(),
                group.rank(),
                group.size(),
                waits.isEmpty() ? "waits for nobody" : waits));
    group.calls().lines().forEach(line -> lines.add("  " + line));
    return lines;
  }
}

package org.gradientsync.core.diagnosis;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.core.rendezvous.GroupParts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reports of a group's ranks after one of them has waited too long, and their summary.
 *
 * <p>A rank that has waited too long creates a {@link ReportFolder}, if it can, and the {@link
 * Watch} of each rank that sees the folder writes a report, and a line for dead ranks of its node.
 * This works without MPI, whose state is unknown by then. The first rank that has waited for the
 * reports writes and logs the summary. Nodes that share no folder have a summary each.
 */
public final class Reports {
  private static final Logger log = LoggerFactory.getLogger(Reports.class);
  private static final long WAIT_NANOS = 2_000_000_000L; // for the other ranks
  private static final int SUMMARY = -1; // in the place of a rank
  private static final String NO_REPORT =
      "has written no report: it is stopped, has ended, cannot write there, or sees another folder";

  final ReportFolder folder;
  final GroupParts group;
  private final RankReport report;
  Watch.Here here; // once this is watched
  private boolean written;

  /** Creates no file before reports are requested. The job's number is random. */
  public Reports(Path base, long job, GroupParts group, RankReport report) {
    folder = new ReportFolder(base, job, group.key().id());
    this.group = group;
    this.report = report;
  }

  /**
   * Requests reports from all ranks after an error, writes this rank's, and waits a limited time
   * for the others. One of the ranks that do so logs the summary. Returns the folder for the end of
   * a message, or an empty text if none can be created.
   */
  public String collect(String text) {
    long start = System.nanoTime();
    Path where = folder.ask();
    answer("timed out");
    here.ranks.forEach(rank -> rank.answer(""));
    while (!allReported() && System.nanoTime() - start <= WAIT_NANOS) {
      LockSupport.parkNanos(10_000_000);
    }
    sumUp(text, where);
    return where == null ? "" : "; reports=" + where;
  }

  private boolean allReported() {
    return group.ranks().all().stream()
        .allMatch(peer -> line(peer) != null || !group.liveness().isAlive(peer));
  }

  private void sumUp(String text, Path where) {
    List<String> lines = new ArrayList<>();
    for (int peer : group.ranks().all()) {
      String none = group.liveness().isAlive(peer) ? NO_REPORT : died(peer);
      lines.add("rank " + peer + " " + Objects.requireNonNullElse(line(peer), none));
    }
    if (here.lines.putIfAbsent(SUMMARY, "") != null || !folder.writeSummary(lines)) {
      return; // another rank was faster
    }
    String none = "none, because no folder can be created for them: " + folder.trouble;
    lines.add("reports: " + (where != null ? where : none));
    String all = String.join("\n  ", lines);
    log.error("{}; what each of {} ranks was doing:\n  {}", text, group.size(), all);
  }

  private String line(int peer) {
    String line = here.lines.get(peer);
    return line != null ? line : folder.firstLine(peer);
  }

  private String died(int peer) {
    return RankReport.at(group.ranks().placeOf(peer)) + group.liveness().fate(peer);
  }

  /**
   * Writes this rank's report, once. Takes no group's lock, because its holder may be stuck, as may
   * the thread that writes, in what a device contributes.
   */
  synchronized void answer(String why) {
    if (!written) {
      written = true;
      Thread writer = new Thread(() -> write(why), "gradient-sync-report");
      writer.setDaemon(true);
      writer.start();
    }
  }

  private void write(String why) {
    List<String> lines = List.of();
    try {
      lines = report.of(why);
      if (folder.where() != null) {
        folder.write(group.rank(), lines);
        for (int peer : group.ranks().all()) {
          if (!group.liveness().isAlive(peer)) { // which ranks of other nodes may not see
            folder.writeOnce(peer, died(peer));
          }
        }
      }
    } catch (IOException | RuntimeException e) {
      log.warn("rank {}: its report cannot be written: folder={}", group.rank(), folder.where(), e);
    } finally {
      lines.stream().limit(1).forEach(line -> here.lines.put(group.rank(), line));
    }
  }
}

package org.gradientsync.core.diagnosis;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Collects the reports of a group's ranks after one of them has waited too long, and summarizes
 * them.
 *
 * <p>The rank that requests reports creates a {@link ReportFolder}, if it can, and rings the job's
 * {@link Bell}. The {@link Watch} of each rank sees it and writes a report, even if the rank's own
 * thread is stuck. This works without MPI, whose state is unknown by then, for all ranks that see
 * the same folder. Rank 0 claims the summary by a file in the folder, and logs it. If rank 0 does
 * not wait, the first rank that has waited for the reports claims it.
 *
 * <p>A node from which no rank has written a report by then has its own folder. Its ranks are asked
 * by messages ({@link RemoteReportRequest}): first those that have reached the call, because they
 * are most likely to be alive, otherwise all that are not known to be gone. A rank that is asked
 * creates its node's folder, leaves the summary to the requester, and answers for its whole node,
 * dead ranks included, when the others have written. If two nodes ask each other at the same time,
 * the node with the lower number writes the summary.
 */
public final class Reports implements Watch.Watched, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Reports.class);
  private static final long WAIT_NANOS = 2_000_000_000L; // for the other ranks, each time
  private static final long HEAD_START_NANOS = 1_000_000_000; // that rank 0 gets
  private static final long SAME_FOLDER_NANOS =
      1_000_000_000; // twice the time that a watch may take
  private static final long NODE_NANOS = 1_000_000_000; // so that the answer is in time
  private static final long QUIET_NANOS = 500_000_000;
  private static final long LOOK_NANOS = 1_000_000_000;
  private static final int MAX_ASKED = 3; // per node; each rank answers for all of it
  private static final int NO_RANK = RankMap.NO_RANK;
  private static final String NO_REPORT =
      "has written no report: it is stopped, has ended, cannot write there, or sees another folder";
  private static final String NO_ANSWER =
      "has not answered: it is stopped, has ended, or cannot be reached";

  private final ReportFolder folder;
  private final Bell bell;
  private final RemoteReportRequest reportRequest; // or null
  private final WatchedGroup group;
  private final RankMap ranks;
  private final Liveness liveness;
  private final Function<String, List<String>> report;
  private long requestSeen; // 0 before the first
  private long lookedAt = System.nanoTime(); // when messages were last checked

  /**
   * Creates nothing before reports are requested.
   *
   * @param bell wakes the job's other processes
   * @param reportRequest for ranks that do not see this rank's folder, or null
   * @param report returns this rank's report, on any thread. The argument is the reason, or an
   *     empty text if another rank has requested it
   */
  public Reports(
      ReportFolder folder,
      Bell bell,
      RemoteReportRequest reportRequest,
      WatchedGroup group,
      Function<String, List<String>> report) {
    this.folder = folder;
    this.bell = bell;
    this.reportRequest = reportRequest;
    this.group = group;
    this.ranks = group.ranks();
    this.liveness = group.liveness();
    this.report = report;
  }

  /**
   * Requests reports from all ranks, writes this rank's, and waits a limited time for the others.
   * One of the ranks that do so logs the summary.
   *
   * @param text the error
   * @return the folder of the reports, for the end of a message, or an empty text if none can be
   *     created; the summary is logged nevertheless
   */
  public String collect(String text) {
    Path where = folder.ask();
    folder.answer(() -> report.apply("timed out"));
    Watch.wake(this);
    try {
      waitAndSumUp(text, where);
    } finally {
      Watch.rest(this);
    }
    return where == null ? "" : "; reports=" + where;
  }

  private void waitAndSumUp(String text, Path where) {
    long start = System.nanoTime();
    await(start, () -> allReported() || othersSeeNoFolder(start));
    if (group.rank() != 0 && liveness.isAlive(0)) {
      await(
          start,
          () -> folder.summarizer() != NO_RANK || System.nanoTime() - start > HEAD_START_NANOS);
    }
    if (folder.leaveSummaryTo(group.rank(), ranks.name(group.rank()))) {
      sumUp(text, where, start);
    } else {
      await(start, this::allReported);
    }
    if (reportRequest != null) {
      await(System.nanoTime(), () -> reportRequest.unanswered().isEmpty());
    }
  }

  /** Waits for a limited time, and answers requests meanwhile. */
  private void await(long start, BooleanSupplier isOver) {
    while (true) {
      answerRequests();
      if (isOver.getAsBoolean() || isOver(start)) {
        return;
      }
      LockSupport.parkNanos(10_000_000);
    }
  }

  private static boolean isOver(long start) {
    return System.nanoTime() - start > WAIT_NANOS;
  }

  private boolean allReported() {
    return allReported(ranks.all());
  }

  /** Whether each of these ranks has reported or died. */
  private boolean allReported(List<Integer> ranks) {
    return ranks.stream().allMatch(peer -> folder.has(peer) || !liveness.isAlive(peer));
  }

  private boolean othersSeeNoFolder(long start) {
    return reportRequest != null
        && System.nanoTime() - start > SAME_FOLDER_NANOS
        && !ranksWithoutFolder().isEmpty();
  }

  /** The ranks of each node from which no rank has written a report here. */
  private List<List<Integer>> ranksWithoutFolder() {
    Map<Integer, List<Integer>> nodes = new TreeMap<>();
    for (int peer : ranks.all()) {
      nodes.computeIfAbsent(ranks.nodeOf(peer), node -> new ArrayList<>()).add(peer);
    }
    nodes.remove(ranks.nodeOf(group.rank()));
    return nodes.values().stream().filter(n -> n.stream().noneMatch(folder::has)).toList();
  }

  private void sumUp(String text, Path where, long start) {
    List<List<Integer>> nodes = reportRequest == null ? List.of() : ranksWithoutFolder();
    nodes.forEach(node -> ask(node, text));
    if (!nodes.isEmpty()) {
      List<Integer> here = ranks.all().stream().filter(peer -> !isOfAny(nodes, peer)).toList();
      BooleanSupplier isHere = () -> allReported(here) || isOver(start);
      await(
          System.nanoTime(),
          () -> nodes.stream().noneMatch(this::mayAnswer) && isHere.getAsBoolean());
    }
    String[] lines = new String[group.size()];
    for (int peer = 0; peer < lines.length; peer++) {
      lines[peer] = line(peer);
    }
    List<String> folders = new ArrayList<>(List.of("reports: " + textOf(where)));
    int other = NO_RANK; // that writes the summary
    for (List<Integer> node : nodes) {
      int responder = responder(node);
      RemoteReportRequest.Answer answer =
          responder == NO_RANK ? null : reportRequest.answerOf(responder);
      for (int i = 0; i < node.size(); i++) {
        int peer = node.get(i);
        if (answer != null) {
          lines[peer] = answer.lines().get(i).text();
        } else if (!folder.has(peer) && liveness.isAlive(peer)) {
          lines[peer] = at(peer, NO_ANSWER);
        }
        if (answer != null && answer.lines().get(i).died()) {
          liveness.noteDeath(peer);
        }
      }
      if (answer != null) {
        folders.add("reports of " + ranks.name(responder) + " and its node: " + answer.folder());
        other = isOfLowerNode(answer.summarizer()) ? answer.summarizer() : other;
      }
    }
    for (int peer = 0; peer < lines.length; peer++) {
      lines[peer] = "rank " + peer + " " + lines[peer];
    }
    folder.writeSummary(List.of(lines));
    if (other != NO_RANK) {
      int summarizer = other; // its request must find this rank waiting
      await(System.nanoTime(), () -> reportRequest.hasAsked(summarizer));
    } else {
      List<String> all = new ArrayList<>(List.of(lines));
      all.addAll(folders);
      log.error(
          "{}; what each of {} ranks was doing:\n  {}",
          text,
          group.size(),
          String.join("\n  ", all));
    }
  }

  /** The folder, or why there is none. */
  private String textOf(Path where) {
    return where != null
        ? where.toString()
        : "none, because no folder can be created for them: " + folder.trouble();
  }

  /** Whether that rank requests reports at the same time and takes precedence over this one. */
  private boolean isOfLowerNode(int summarizer) {
    return summarizer >= 0
        && summarizer < group.size()
        && ranks.nodeOf(summarizer) < ranks.nodeOf(group.rank());
  }

  private String line(int peer) {
    String line = folder.firstLine(peer);
    if (line != null) {
      return line;
    }
    return liveness.isAlive(peer) ? NO_REPORT : at(peer, "has died");
  }

  private String at(int peer, String text) {
    return RankReport.at(ranks.placeOf(peer)) + text;
  }

  private void ask(List<Integer> node, String text) {
    List<Integer> there = node.stream().filter(peer -> !liveness.isUnreachable(peer)).toList();
    List<Integer> come = there.stream().filter(group.arrivals()::hasArrived).toList();
    List<Integer> asked = (come.isEmpty() ? there : come).stream().limit(MAX_ASKED).toList();
    if (!asked.isEmpty()) {
      // Sending to a dead rank can make MPI end this process, so log first.
      log.warn("{}; asking {} what its node is doing", text, ranks.names(asked));
      asked.forEach(reportRequest::ask);
    }
  }

  private static boolean isOfAny(List<List<Integer>> nodes, int peer) {
    return nodes.stream().anyMatch(node -> node.contains(peer));
  }

  /** Whether ranks of other nodes can be asked, and can ask. */
  public boolean asksByMessages() {
    return reportRequest != null;
  }

  /** Whether a node has not answered, and a rank is left that could. */
  private boolean mayAnswer(List<Integer> node) {
    return responder(node) == NO_RANK
        && !allReported(node)
        && !node.stream().allMatch(liveness::isUnreachable);
  }

  /** The rank that has answered for a node, or {@link RankMap#NO_RANK}. */
  private int responder(List<Integer> node) {
    return node.stream()
        .filter(peer -> reportRequest.answerOf(peer) != null)
        .findFirst()
        .orElse(NO_RANK);
  }

  /**
   * Answers requests by messages as soon as all ranks of this node have written their reports. Any
   * thread calls this repeatedly.
   */
  private synchronized void answerRequests() {
    List<Integer> requesters = reportRequest == null ? List.of() : reportRequest.unanswered();
    if (requesters.isEmpty()) {
      return;
    }
    Path where = folder.ask();
    int first = requesters.get(0);
    folder.leaveSummaryTo(first, ranks.name(first));
    if (requestSeen == 0) {
      requestSeen = System.nanoTime();
      Watch.wake(this);
    }
    List<Integer> own = ranks.onNode(ranks.nodeOf(group.rank()));
    int summarizer = folder.summarizer();
    if (summarizer != NO_RANK && allReported(own) || System.nanoTime() - requestSeen > NODE_NANOS) {
      List<RemoteReportRequest.Line> lines =
          own.stream()
              .map(peer -> new RemoteReportRequest.Line(!liveness.isAlive(peer), line(peer)))
              .toList();
      RemoteReportRequest.Answer answer =
          new RemoteReportRequest.Answer(summarizer, textOf(where), lines);
      requesters.forEach(requester -> reportRequest.answer(requester, answer));
      Watch.rest(this);
    }
  }

  @Override
  public GroupKey key() {
    return group.key();
  }

  @Override
  public int size() {
    return ranks.size();
  }

  @Override
  public Bell bell() {
    return bell;
  }

  /** Takes no lock, because its holder may be stuck. */
  @Override
  public void answerIfAsked() {
    if (folder.isAsked()) {
      folder.answer(() -> report.apply(""));
    }
  }

  /**
   * Takes no lock either. Runs rarely while calls are made, to disturb other users of MPI little.
   */
  @Override
  public void answerMessages() {
    long now = System.nanoTime();
    if (group.calls().log().isQuietFor(QUIET_NANOS) || now - lookedAt > LOOK_NANOS) {
      lookedAt = now;
      liveness.readNotices(); // for ranks that wait for one that this rank does not wait for
      answerRequests();
    }
  }

  /** Wakes no process, and sends and receives no messages from now on. */
  public void silence() {
    bell.leave(group.key().id());
    if (reportRequest != null) {
      reportRequest.silence();
    }
  }

  @Override
  public void close() {
    bell.leave(group.key().id());
    if (reportRequest != null) {
      reportRequest.close();
    }
  }
}

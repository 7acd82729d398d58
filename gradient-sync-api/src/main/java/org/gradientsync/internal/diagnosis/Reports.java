package org.gradientsync.internal.diagnosis;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.gradientsync.internal.ranks.GroupKey;
import org.gradientsync.internal.ranks.Liveness;
import org.gradientsync.internal.ranks.RankMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the ranks of one group say they are doing, after one of them has waited too long, and who
 * sums it up.
 *
 * <p>A rank that asks makes a {@link ReportFolder} and rings the job's {@link Bell}. Each rank's
 * {@link Watch} hears it and writes a report, also where the rank's own thread is stuck. So it
 * works without MPI, whose state nobody knows by then, among all ranks that see the same folder.
 * Rank 0 takes the summary on itself, by a file in the folder, and logs it; if it does not wait,
 * too, the first rank that has waited for the reports does.
 *
 * <p>A node of which no rank has written a report into the folder by then has one of its own. Ranks
 * of it are asked by messages ({@link RemoteReportRequest}): those that have come to the call,
 * because they are most likely to live, and otherwise all that are not known to be gone. Who is
 * asked makes his node's folder, leaves the summary to the requester, and answers for his whole
 * node, also for the ranks of it that have died, when the others have written. Where two nodes ask
 * each other at the same time, the one with the lower number sums up.
 */
public final class Reports implements Watch.Watched, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Reports.class);
  private static final long WAIT_NANOS = 2_000_000_000L; // with others, each time
  private static final long HEAD_START_NANOS = 1_000_000_000; // of rank 0
  private static final long SAME_FOLDER_NANOS = 1_000_000_000; // twice what watches may take
  private static final long NODE_NANOS = 1_000_000_000; // an answer leaves in time for the asker
  private static final long QUIET_NANOS = 500_000_000;
  private static final long LOOK_NANOS = 1_000_000_000;
  private static final int MAX_ASKED = 3; // of a node; each answers for all of it
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
  private long requestSeen; // 0 if there is none
  private long lookedAt = System.nanoTime(); // for messages, by the thread that does

  /**
   * Nothing is made before it is asked for.
   *
   * @param bell wakes the job's other processes
   * @param reportRequest for ranks that see no folder of this one's, or null
   * @param report gives this rank's report, for any thread; from what made it write one, or an
   *     empty text if others asked for it
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
   * Asks all ranks for reports, writes this one's, and waits for the others' as long as is worth
   * while. One of the ranks that do so logs what they say.
   *
   * @param text what is wrong
   * @return where the reports are, for the end of a message, or an empty text if nowhere
   */
  public String collect(String text) {
    Path where = folder.ask();
    if (where == null) {
      return "";
    }
    folder.answer(() -> report.apply("timed out"));
    Watch.wake(this);
    try {
      waitAndSumUp(text, where);
    } finally {
      Watch.rest(this);
    }
    return "; reports=" + where;
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

  /** Waits as long as is worth while; those who ask meanwhile are answered. */
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

  /** Whether nobody's report is still to come. */
  private boolean allReported(List<Integer> ranks) {
    return ranks.stream().allMatch(peer -> folder.has(peer) || !liveness.isAlive(peer));
  }

  private boolean othersSeeNoFolder(long start) {
    return reportRequest != null
        && System.nanoTime() - start > SAME_FOLDER_NANOS
        && !ranksWithoutFolder().isEmpty();
  }

  /** The ranks of each node of which none has written a report here. */
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
    List<String> folders = new ArrayList<>(List.of("reports: " + where));
    int other = NO_RANK; // that sums up
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
      int summarizer = other; // whose question must find this rank here
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

  /** Whether it is one that asks at the same time, and goes before this one. */
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
      // To send to one that has died can make MPI end this process, which has said nothing yet.
      log.warn("{}; asking {} what its node is doing", text, ranks.names(asked));
      asked.forEach(reportRequest::ask);
    }
  }

  private static boolean isOfAny(List<List<Integer>> nodes, int peer) {
    return nodes.stream().anyMatch(node -> node.contains(peer));
  }

  /** Whether ranks of other nodes can be asked, and ask. */
  public boolean asksByMessages() {
    return reportRequest != null;
  }

  /** Whether a node has not answered, and somebody is there who could. */
  private boolean mayAnswer(List<Integer> node) {
    return responder(node) == NO_RANK
        && !allReported(node)
        && !node.stream().allMatch(liveness::isUnreachable);
  }

  /** Who of a node has answered for it, or {@link RankMap#NO_RANK}. */
  private int responder(List<Integer> node) {
    return node.stream()
        .filter(peer -> reportRequest.answerOf(peer) != null)
        .findFirst()
        .orElse(NO_RANK);
  }

  /**
   * Answers the ranks that ask by messages, as soon as this node's ranks have all written their
   * reports. Called again and again, by any thread.
   */
  private synchronized void answerRequests() {
    List<Integer> requesters = reportRequest == null ? List.of() : reportRequest.unanswered();
    Path where = requesters.isEmpty() ? null : folder.ask();
    if (where == null) {
      return;
    }
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
          new RemoteReportRequest.Answer(summarizer, where.toString(), lines);
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

  /** Takes no lock, as the holder may be stuck. */
  @Override
  public void answerIfAsked() {
    if (folder.isAsked()) {
      folder.answer(() -> report.apply(""));
    }
  }

  /** Likewise. Seldom while calls are made, so that it takes little from what else uses MPI. */
  @Override
  public void answerMessages() {
    long now = System.nanoTime();
    if (group.calls().log().isQuietFor(QUIET_NANOS) || now - lookedAt > LOOK_NANOS) {
      lookedAt = now;
      answerRequests();
    }
  }

  /** From now on nobody is woken, and no messages are sent or looked for. */
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

package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.Scratch;

/**
 * Collects the ranks' facts. Ranks of one node exchange them through a folder, without MPI. In
 * addition a process for each rank joins the job, and carries the facts of other nodes by MPI.
 */
final class Round {
  private static final String JOIN = "join";
  private static final String DONE = "done";
  private static final String YES = "yes";

  private final Place place;
  private final Clock clock;
  private final Optional<Node> node;
  private final Map<Integer, Facts> others = new TreeMap<>();
  private boolean gathered;

  Round(Place place, Clock clock) {
    this.place = place;
    this.clock = clock;
    node = Node.in(place.folder());
  }

  /**
   * Joins the job, unless a rank of this node is known to be unable to. The others would wait for
   * it in vain.
   *
   * @param facts this rank's facts; receives what was chosen
   * @param libraries the folder of Open MPI's Java library, or the empty string
   */
  void join(Facts facts, String libraries) {
    node.ifPresent(those -> those.put(place.rank() + ".1", facts.text()));
    String obstacle = obstacle(facts);
    if (obstacle.isEmpty()) {
      tryJob(facts, libraries);
    } else {
      facts.add(JobMember.REDUCER, JobMember.CHOSEN, "not tried: " + obstacle);
    }
    node.ifPresent(those -> those.put(place.rank() + ".2", facts.text()));
  }

  /** Returns why the ranks of this node do not join, or the empty string. */
  private String obstacle(Facts facts) {
    if (LauncherVariables.ofProcess().areForMpich()) {
      return "an MPI of MPICH's kind takes only the processes that its launcher has started";
    }
    String own = place.launched() ? obstacleOf(place.rank(), facts) : "";
    if (node.isEmpty() || place.localSize() == 1) {
      return own;
    }
    if (!place.isFirstOfNode()) {
      return node.get()
          .get(JOIN, clock.until(0.72))
          .map(answer -> answer.equals(YES) ? "" : answer)
          .orElse("the first rank of this node did not say that all are there");
    }
    int here = 0;
    String obstacle = own;
    for (int rank = 0; rank < Math.max(place.size(), place.localSize()); rank++) {
      // On one node all ranks must be here. On several nodes nobody knows where the others are.
      boolean mustBeHere = place.size() == place.localSize();
      Optional<String> text =
          node.get().get(rank + ".1", mustBeHere ? clock.until(0.7) : Duration.ZERO);
      if (text.isPresent()) {
        here++;
        if (obstacle.isEmpty()) {
          obstacle = obstacleOf(rank, Facts.read(text.get()));
        }
      } else if (mustBeHere && obstacle.isEmpty()) {
        obstacle = "rank " + rank + " has not told anything";
      }
    }
    node.get().put(JOIN, obstacle.isEmpty() ? YES : obstacle);
    return obstacle;
  }

  private static String obstacleOf(int rank, Facts facts) {
    String bindings = facts.get(Mpi.MPI, Mpi.BINDINGS);
    return bindings.equals(Mpi.USABLE) || Mpi.callsLibrary(facts)
        ? ""
        : "Open MPI's Java bindings are not usable on rank " + rank;
  }

  private void tryJob(Facts facts, String libraries) {
    Path folder = null;
    try {
      folder = Scratch.open();
      Path own = folder.resolve("own");
      Path all = folder.resolve("all");
      Facts known = new Facts();
      known.addAll(facts);
      known.add(JobMember.JOB, "rank", place.rank());
      Files.writeString(own, known.text());
      Duration limit = clock.until(0.86);
      String wait = Long.toString(Math.max(1, limit.toSeconds() - 3));
      ChildProcess child =
          ChildProcess.java(JobMember.class.getName(), own.toString(), all.toString(), wait)
              .property("gradientsync.dev.peer.tuning", "off") // measuring takes too long
              .libraries(libraries);
      ChildProcess.Result result = child.run(limit);
      facts.addAll(Facts.read(result.output()));
      gathered = result.output().lines().anyMatch(JobMember.GATHERED::equals);
      if (!gathered) {
        String failure = result.after(JobMember.FAILED);
        String reason = failure.isEmpty() ? result.failure() : failure;
        facts.add(JobMember.REDUCER, JobMember.CHOSEN, "none: " + reason);
      }
      for (Facts each : JobMember.read(all)) {
        String rank = each.get(JobMember.JOB, "rank");
        others.put(Integer.parseInt(rank), each.without(JobMember.JOB));
      }
    } catch (IOException | NumberFormatException e) {
      facts.add(JobMember.REDUCER, JobMember.CHOSEN, "none: " + e.getMessage());
    } finally {
      Scratch.close(folder);
    }
  }

  /**
   * Returns the facts that this rank has to print, in rank order; none if another rank prints them.
   *
   * @param patient whether there is time to wait for others
   */
  List<Report> toTell(Facts facts, boolean patient) {
    boolean first = place.isFirstOfNode();
    if (place.rank() != 0 && gathered && (node.isEmpty() || first)) {
      return List.of(); // rank 0 has them by MPI
    }
    if (!first && node.isPresent() && toldByFirst(patient)) {
      return List.of();
    }
    Map<Integer, Facts> all = new TreeMap<>(others);
    if (first && node.isPresent()) {
      Duration limit = patient ? clock.until(0.93) : Duration.ZERO;
      boolean oneNode = place.size() == place.localSize();
      for (int rank = 0; rank < place.size(); rank++) {
        int number = rank;
        boolean wait = patient && oneNode && !others.containsKey(rank);
        Optional<String> text =
            node.get().get(rank + ".2", wait ? clock.until(0.93) : Duration.ZERO);
        // MPI may have brought more than this file has
        if (text.isEmpty() && !others.containsKey(rank)) {
          text = node.get().get(rank + ".1", Duration.ZERO);
        }
        text.ifPresent(found -> all.put(number, Facts.read(found)));
      }
    }
    all.put(place.rank(), facts);
    return all.entrySet().stream()
        .map(entry -> new Report(entry.getKey(), entry.getValue()))
        .toList();
  }

  private boolean toldByFirst(boolean patient) {
    return node.get().get(DONE, patient ? clock.until(0.97) : Duration.ZERO).isPresent();
  }

  /** Lets the other ranks of this node end. */
  void told() {
    if (place.isFirstOfNode()) {
      node.ifPresent(those -> those.put(DONE, YES));
    }
  }
}

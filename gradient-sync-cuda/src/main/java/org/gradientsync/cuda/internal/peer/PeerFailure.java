package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import org.gradientsync.core.ranks.Amounts;
import org.gradientsync.spi.RankGroup;

/** Describes the failure that a kernel left in the report. */
final class PeerFailure {
  private final RankGroup group;
  private final PeerReport report;
  private final PeerNames names;

  PeerFailure(RankGroup group, PeerReport report, PeerNames names) {
    this.group = group;
    this.report = report;
    this.names = names;
  }

  /** Lists what each rank asked for, if the calls did not match. */
  String table() {
    StringBuilder text =
        new StringBuilder("the ranks' calls do not match, rank=" + group.rank() + ":");
    for (int peer = 0; peer < group.size(); peer++) {
      int tag = report.tagOf(peer);
      boolean here = tag == PeerTag.GAVE_UP || report.callOf(peer) >= report.call();
      text.append("\n  rank ").append(peer).append(": ").append(here ? describe(tag) : "none yet");
    }
    return text.toString();
  }

  private String describe(int tag) {
    if (tag == PeerTag.GAVE_UP) {
      return "gave up, call=" + report.call();
    }
    if (PeerTag.isMessage(tag)) {
      return PeerTag.sends(tag)
          ? "send(to=" + PeerTag.peer(tag) + ")"
          : "receive(from=" + PeerTag.peer(tag) + ")";
    }
    int registration = PeerTag.registration(tag);
    return call(tag) + ", registration=" + registration + ", call=" + report.call();
  }

  private String call(int tag) {
    int registration = PeerTag.registration(tag);
    if (PeerTag.isCollective(tag)) {
      return names.ofCollective(registration);
    }
    String name = names.of(registration);
    String operation = PeerTag.operation(tag);
    return operation.equals("broadcast")
        ? "broadcast(" + name + ")"
        : "allReduce(" + name + ", " + operation + ")";
  }

  /** Names the ranks that did not join or gave up, and how long this rank waited. */
  String cause() {
    List<Integer> gaveUp = new ArrayList<>();
    List<Integer> missing = new ArrayList<>();
    int own = report.tagOf(group.rank());
    for (int peer = 0; peer < group.size(); peer++) {
      if (PeerTag.isMessage(own) && peer != PeerTag.peer(own)) {
        continue; // takes no part
      }
      if (report.tagOf(peer) == PeerTag.GAVE_UP) {
        gaveUp.add(peer);
      } else if (report.callOf(peer) < report.call()) {
        missing.add(peer);
      }
    }
    StringJoiner what = new StringJoiner(", and ");
    if (!missing.isEmpty()) {
      what.add(group.names(missing) + " did not join in time");
    }
    if (!gaveUp.isEmpty()) {
      what.add(group.names(gaveUp) + " gave up the call or closed the sync before" + why(gaveUp));
    }
    if (missing.isEmpty() && gaveUp.isEmpty()) {
      what.add("a rank stopped in the middle of the call");
    }
    return new StringBuilder(what.toString())
        .append(", waited=")
        .append(Amounts.time(report.waitedNanos()))
        .append(", timeout=")
        .append(Amounts.time(group.timeouts().timeout()))
        .append(", on the GPU in ")
        .append(describe(own))
        .toString();
  }

  /** The reason of the first of these ranks that gave one, or an empty text. */
  private String why(List<Integer> gaveUp) {
    for (int peer : gaveUp) {
      String why = group.whyGivenUp(peer);
      if (!why.isEmpty()) {
        return " (rank " + peer + ": " + why + ")";
      }
    }
    return "";
  }
}

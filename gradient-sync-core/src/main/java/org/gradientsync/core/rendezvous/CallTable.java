package org.gradientsync.core.rendezvous;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall.Kind;

/** Tables of what each rank asked for, for error messages after a rendezvous. */
public final class CallTable {
  private static final String UNEVEN_STEPS =
      "if the ranks have different numbers of steps, give all as many, or build GradientBuckets with"
          + " unevenSteps()";

  private static final int LINES = 16; // for each rank one, or at most so many

  private CallTable() {}

  /** What to do if another rank has closed its sync, perhaps after its last step; or nothing. */
  public static String adviceAfterClose(Calls calls) {
    boolean isLater =
        calls.begun() > 0 && CallRecord.origin(calls.currentBytes()) == Origin.LATER_BUCKET;
    return isLater || calls.include(Origin.UNEVEN_BUCKET) ? "" : "; " + UNEVEN_STEPS;
  }

  /** The calls of all ranks after a mismatch, which may be that of their counts on devices. */
  public static String ofMismatch(Rendezvous rendezvous, int rank, int size, boolean counts) {
    StringBuilder text = new StringBuilder("the ranks' calls do not match, rank=" + rank + ":");
    List<String> calls = new ArrayList<>();
    boolean begin = false;
    boolean follow = false;
    for (int peer = 0; peer < size; peer++) {
      ByteBuffer call = rendezvous.call(peer);
      String after = ", after " + CallRecord.enqueued(call) + " calls on its device";
      calls.add(CallRecord.describe(call) + (counts ? after : ""));
      begin |= CallRecord.origin(call) == Origin.FIRST_BUCKET;
      follow |= mayFollowSteps(call);
    }
    // A line for each rank, or for each group of ranks with the same call if there are many.
    List<Integer> ranks = IntStream.range(0, size).boxed().toList();
    Collection<List<Integer>> lines =
        size <= LINES
            ? ranks.stream().map(List::of).toList()
            : ranks.stream().collect(groupingBy(calls::get, LinkedHashMap::new, toList())).values();
    for (List<Integer> line : lines.stream().limit(LINES).toList()) {
      text.append("\n  ").append(RankMap.ranges(line)).append(": ").append(calls.get(line.get(0)));
    }
    if (lines.size() > LINES) {
      text.append("\n  and ").append(lines.size() - LINES).append(" other calls");
    }
    if (begin && follow) { // some ranks may be in a step while others have had their last one
      text.append("\n  ").append(UNEVEN_STEPS);
    }
    return text.toString();
  }

  public static String ofPair(int rank, ByteBuffer own, int peer, ByteBuffer other) {
    return "the ranks' calls do not match, rank=%s:\n  rank %s: %s\n  rank %s: %s"
        .formatted(rank, rank, CallRecord.describe(own), peer, CallRecord.describe(other));
  }

  /** Whether a rank that has a step less than others may make the call: it belongs to no step. */
  private static boolean mayFollowSteps(ByteBuffer call) {
    if (!CallRecord.isValid(call)) {
      return true;
    }
    return switch (CallRecord.origin(call)) {
      case FIRST_BUCKET, LATER_BUCKET, UNEVEN_BUCKET -> false;
      case REGISTER, REBUILD_BUCKETS, CLIP, IS_FINITE, DISCARD, UPDATE_THROWN -> false;
      case SYNC -> CallRecord.kind(call) != Kind.ALL_REDUCE;
      default -> true;
    };
  }

  /** The calls of the ranks whose gradients are not finite; the buffer is this rank's, or null. */
  public static String ofNotFinite(
      Rendezvous rendezvous, int rank, int size, AbstractDeviceBuffer buffer) {
    StringBuilder text = new StringBuilder("gradients are not finite, rank=" + rank + ":");
    int found = 0;
    for (int peer = 0; peer < size; peer++) {
      String call = CallRecord.describe(rendezvous.call(peer));
      long index = CallRecord.notFinite(rendezvous.call(peer));
      if (index >= 0 && ++found <= LINES) {
        String place = buffer == null ? "index=" + index : buffer.placeOf(index);
        text.append("\n  rank %s: %s, first at %s".formatted(peer, call, place));
      }
    }
    if (found > LINES) {
      text.append("\n  and ").append(found - LINES).append(" more ranks");
    }
    return text.append("\n  this call changed no buffer").toString();
  }
}

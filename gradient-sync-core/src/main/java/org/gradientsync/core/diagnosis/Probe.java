package org.gradientsync.core.diagnosis;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.core.rendezvous.WaitPhase;

/**
 * A message that travels from a waiting rank to the rank that it waits for, and on from there. It
 * holds the chain of waits; of a long one the first waits and the last, and how many are between
 * them. Ranks have their numbers in the job. See {@link DeadlockDetector}.
 */
public final class Probe {
  enum Kind {
    ASK, // extends the chain of waits
    READ, // acknowledges a probe, so that the next may be sent
    FOUND // reports a cycle
  }

  /** A {@link LongWait} of a rank, with its {@link CallRecord}. */
  record Wait(
      int waiting,
      int awaited,
      GroupKey group,
      WaitPhase phase,
      long number,
      long id,
      ByteBuffer call) {
    private long hash() {
      return new SplittableRandom(31L * id + waiting).nextLong();
    }
  }

  static final int MAX = 15; // waits, in the 4 KB that a closed send still sends
  private static final int HEADER = 9 * Long.BYTES;
  private static final int WAIT = 7 * Long.BYTES + CallRecord.BYTES;
  static final int BYTES = HEADER + MAX * WAIT;

  final Kind kind;
  final GroupKey group; // of the receiver, for which the probe is
  final List<Wait> waits = new ArrayList<>();
  int sender;
  long passed; // how often a wait was added, also before the last restart
  int skipped; // waits before the last one that are left out
  private long skippedSum; // of their hash codes
  private boolean mixed; // whether one of them is in another group than the one before them

  Probe(Kind kind, GroupKey group) {
    this.kind = kind;
    this.group = group;
  }

  /** A chain from one of its waits on, in another message. */
  Probe(Kind kind, GroupKey group, Probe chain, int first) {
    this(kind, group);
    waits.addAll(chain.waits.subList(first, chain.waits.size()));
    passed = chain.passed;
    skipped = chain.skipped;
    skippedSum = chain.skippedSum;
    mixed = chain.mixed;
  }

  ByteBuffer encode(int newSender) {
    ByteBuffer out = HostBuffers.allocate(BYTES);
    out.putLong(kind.ordinal()).putLong(waits.size()).putLong(newSender);
    out.putLong(group.context()).putLong(group.id());
    out.putLong(passed).putLong(skipped).putLong(skippedSum).putLong(mixed ? 1 : 0);
    for (Wait wait : waits) {
      out.putLong(wait.waiting).putLong(wait.awaited);
      out.putLong(wait.group.context()).putLong(wait.group.id());
      out.putLong(wait.phase.ordinal()).putLong(wait.number).putLong(wait.id);
      out.put(wait.call.duplicate());
    }
    return out.clear();
  }

  /** Reads any bytes that another rank has sent; null if they are invalid. */
  static Probe decode(ByteBuffer message, int ranks) {
    ByteBuffer in = message.duplicate().order(message.order()).clear();
    long kind = in.getLong();
    long length = in.getLong();
    long sender = in.getLong();
    if (!isBelow(kind, Kind.values().length)
        || !isBelow(length, MAX + 1L)
        || !isBelow(sender, ranks)) {
      return null;
    }
    Probe probe =
        new Probe(Kind.values()[(int) kind], new GroupKey((int) in.getLong(), in.getLong()));
    probe.sender = (int) sender;
    probe.passed = in.getLong();
    long skipped = in.getLong();
    probe.skipped = (int) skipped;
    probe.skippedSum = in.getLong();
    probe.mixed = in.getLong() != 0;
    if (!isBelow(skipped, 2L * ranks) || length == 0 && probe.kind != Kind.READ) {
      return null;
    }
    for (int i = 0; i < length; i++) {
      long waiting = in.getLong();
      long awaited = in.getLong();
      GroupKey key = new GroupKey((int) in.getLong(), in.getLong());
      long phase = in.getLong();
      long number = in.getLong();
      long id = in.getLong();
      ByteBuffer call = CallRecord.allocate();
      in.get(call.array());
      if (!isBelow(waiting, ranks)
          || !isBelow(awaited, ranks)
          || !isBelow(phase, WaitPhase.values().length)) {
        return null;
      }
      WaitPhase known = WaitPhase.values()[(int) phase];
      probe.waits.add(new Wait((int) waiting, (int) awaited, key, known, number, id, call));
    }
    return probe;
  }

  private static boolean isBelow(long number, long end) {
    return number >= 0 && number < end;
  }

  Wait last() {
    return waits.get(waits.size() - 1);
  }

  void restart() {
    waits.clear();
    skipped = 0;
    skippedSum = 0;
    mixed = false;
  }

  void add(Wait wait) {
    if (waits.size() == MAX) {
      Wait left = waits.remove(MAX - 1);
      skipped++;
      skippedSum += left.hash();
      mixed |= !left.group.equals(waits.get(MAX - 2).group);
    }
    passed++;
    waits.add(wait);
  }

  /** Whether the same ranks are in the same waits, whichever of them the probes hold. */
  boolean isSameCycle(Probe other) {
    return other.waits.size() + other.skipped == waits.size() + skipped && other.sum() == sum();
  }

  private long sum() {
    return skippedSum + waits.stream().mapToLong(Wait::hash).sum();
  }

  int indexOf(int rank) {
    return waits.stream().map(Wait::waiting).toList().indexOf(rank);
  }

  boolean isOfOneGroup() {
    return !mixed && waits.stream().map(Wait::group).distinct().count() == 1;
  }

  /** For an error of a rank of a group: its call, and who waits for whom. */
  public String describe(GroupParts of) {
    return "rank=" + of.rank() + ", " + of.during() + ":" + table(of.ranks()::nameInJob);
  }

  /** Who waits for whom: a line for each rank of which the probe holds the wait, in rank order. */
  String table(IntFunction<String> name) {
    boolean one = isOfOneGroup();
    StringBuilder text = new StringBuilder();
    for (Wait wait : waits.stream().sorted(Comparator.comparing(Wait::waiting)).toList()) {
      text.append("\n  ").append(name.apply(wait.waiting)).append(": ");
      text.append(CallRecord.describe(wait.call));
      text.append(one ? "" : " of communicator " + wait.group.context());
      text.append(", waits for ").append(name.apply(wait.awaited));
    }
    if (skipped > 0) {
      text.append("\n  and ").append(skipped).append(" more ranks of this cycle");
    }
    return text.toString();
  }
}

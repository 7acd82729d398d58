package org.gradientsync.core.diagnosis;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.WaitPhase;

/**
 * A message that travels from a waiting rank to the rank that it waits for, and on from there. It
 * holds the chain of waits; of a long one the first and the last waits, and how many are between
 * them. See {@link DeadlockDetector}.
 */
public final class Probe {
  enum Kind {
    /** Extends the chain of waits. */
    ASK,
    /** Acknowledges a probe, so that the next may be sent. */
    READ,
    /** Reports a cycle. */
    FOUND
  }

  /** The maximum number of waits that a probe holds. */
  static final int MAX = 16;

  private static final int KIND = 0;
  private static final int LENGTH = 8;
  private static final int CONTEXT = 16;
  private static final int GROUP = 24;
  private static final int SKIPPED = 32; // waits that are left out
  private static final int GAP = 40; // the index of the first wait after them
  private static final int MIXED = 48; // 1 if one of them is in another group than the first wait
  private static final int PASSED = 56; // how often a wait was added
  private static final int SENDER = 64; // of this message
  private static final int SUM = 72; // of the hash codes of the waits that are left out
  private static final int WAITS = 80;

  // of each wait
  private static final int WAITING = 0;
  private static final int AWAITED = 8;
  private static final int OWN_CONTEXT = 16;
  private static final int OWN_GROUP = 24;
  private static final int PHASE = 32;
  private static final int NUMBER = 40;
  private static final int TAG = 48;
  private static final int ID = 56;
  private static final int CALL = 64;
  private static final int WAIT = CALL + CallRecord.BYTES;

  /** The size of a message: less than the 4 KB that MPI libraries send eagerly by default. */
  static final int BYTES = WAITS + MAX * WAIT;

  private static final Kind[] KINDS = Kind.values();
  private static final WaitPhase[] PHASES = WaitPhase.values();

  private final ByteBuffer memory;

  /**
   * @param memory any bytes that another rank has sent
   */
  Probe(ByteBuffer memory) {
    this.memory = memory;
  }

  static Probe of(Kind kind) {
    Probe probe = new Probe(HostBuffers.allocate(BYTES));
    probe.memory.putLong(KIND, kind.ordinal());
    return probe;
  }

  /** The same chain in its own memory. */
  Probe copy(Kind kind) {
    Probe copy = new Probe(HostBuffers.allocate(BYTES));
    copy.memory.put(0, memory, 0, BYTES);
    copy.memory.putLong(KIND, kind.ordinal());
    return copy;
  }

  ByteBuffer memory() {
    return memory;
  }

  /**
   * The kind of the probe, or null if it is invalid.
   *
   * @param ranks the number of ranks of the job
   */
  Kind kind(int ranks) {
    long kind = memory.getLong(KIND);
    long length = memory.getLong(LENGTH);
    boolean valid = isBelow(kind, KINDS.length) && isBelow(length, MAX + 1);
    valid &= isBelow(memory.getLong(SENDER), ranks);
    valid &= length > 0 || kind == Kind.READ.ordinal();
    valid &= isBelow(memory.getLong(SKIPPED), 2L * ranks) && isBelow(memory.getLong(GAP), MAX);
    for (int i = 0; valid && i < length; i++) {
      valid =
          isBelow(memory.getLong(at(i) + PHASE), PHASES.length)
              && isBelow(memory.getLong(at(i) + WAITING), ranks)
              && isBelow(memory.getLong(at(i) + AWAITED), ranks);
    }
    return valid ? KINDS[(int) kind] : null;
  }

  private static boolean isBelow(long number, long end) {
    return number >= 0 && number < end;
  }

  /** Sets the world rank that sends this message. */
  void setSender(int rank) {
    memory.putLong(SENDER, rank);
  }

  /** The world rank that has sent this message. */
  int sender() {
    return (int) memory.getLong(SENDER);
  }

  int length() {
    return (int) memory.getLong(LENGTH);
  }

  /** The number of waits that are left out. */
  int skipped() {
    return (int) memory.getLong(SKIPPED);
  }

  /** How often a wait was added, also before the last {@link #restart}. */
  long passed() {
    return memory.getLong(PASSED);
  }

  /** Forgets all waits. */
  void restart() {
    memory.putLong(LENGTH, 0);
    memory.putLong(SKIPPED, 0);
    memory.putLong(GAP, 0);
    memory.putLong(MIXED, 0);
    memory.putLong(SUM, 0);
  }

  private void skip() {
    int gap = MAX / 2;
    memory.putLong(GAP, gap);
    memory.putLong(SKIPPED, skipped() + 1L);
    memory.putLong(SUM, memory.getLong(SUM) + hash(gap));
    memory.putLong(MIXED, isMixed() || !group(gap).equals(group(0)) ? 1 : 0);
    memory.put(at(gap), memory, at(gap + 1), (MAX - gap - 1) * WAIT);
    memory.putLong(LENGTH, MAX - 1);
  }

  private boolean isMixed() {
    return memory.getLong(MIXED) != 0;
  }

  void add(int waiting, LongWait pending) {
    if (length() == MAX) {
      skip();
    }
    memory.putLong(PASSED, passed() + 1);
    int at = at(length());
    memory.putLong(at + WAITING, waiting);
    memory.putLong(at + AWAITED, pending.awaited());
    memory.putLong(at + OWN_CONTEXT, pending.group.key().context());
    memory.putLong(at + OWN_GROUP, pending.group.key().id());
    memory.putLong(at + PHASE, pending.phase().ordinal());
    memory.putLong(at + NUMBER, pending.number);
    memory.putLong(at + TAG, pending.tag);
    memory.putLong(at + ID, pending.id);
    memory.put(at + CALL, pending.group.calls().log().currentBytes(), 0, CallRecord.BYTES);
    memory.putLong(LENGTH, length() + 1);
  }

  /** The chain from one of its waits on. */
  Probe from(int first) {
    Probe part = of(Kind.ASK);
    int length = length() - first;
    part.memory.put(WAITS, memory, at(first), length * WAIT);
    part.memory.putLong(LENGTH, length);
    int gap = (int) memory.getLong(GAP);
    if (first < gap) {
      part.memory.putLong(SKIPPED, skipped());
      part.memory.putLong(GAP, gap - first);
      part.memory.putLong(MIXED, memory.getLong(MIXED));
      part.memory.putLong(SUM, memory.getLong(SUM));
    }
    return part;
  }

  /** Whether the same ranks are in the same waits, whichever of them the probes hold. */
  boolean isSameCycle(Probe other) {
    return other.length() + other.skipped() == length() + skipped() && other.sum() == sum();
  }

  private long sum() {
    long sum = memory.getLong(SUM);
    for (int i = 0; i < length(); i++) {
      sum += hash(i);
    }
    return sum;
  }

  private long hash(int i) {
    long bits = 31L * id(i) + waiting(i);
    bits = (bits ^ bits >>> 30) * 0xbf58476d1ce4e5b9L; // of SplittableRandom
    return bits ^ bits >>> 27;
  }

  /** Sets which of the receiver's groups the probe is for. */
  void setGroup(GroupKey key) {
    memory.putLong(CONTEXT, key.context());
    memory.putLong(GROUP, key.id());
  }

  GroupKey group() {
    return new GroupKey(memory.getLong(CONTEXT), memory.getLong(GROUP));
  }

  /** The world rank that waits. */
  int waiting(int i) {
    return (int) memory.getLong(at(i) + WAITING);
  }

  /** The world rank that is waited for. */
  int awaited(int i) {
    return (int) memory.getLong(at(i) + AWAITED);
  }

  /** The group in which a rank waits. */
  GroupKey group(int i) {
    return new GroupKey(memory.getLong(at(i) + OWN_CONTEXT), memory.getLong(at(i) + OWN_GROUP));
  }

  WaitPhase phase(int i) {
    return PHASES[(int) memory.getLong(at(i) + PHASE)];
  }

  /** The call; see {@link LongWait#begin}. */
  long number(int i) {
    return memory.getLong(at(i) + NUMBER);
  }

  int tag(int i) {
    return (int) memory.getLong(at(i) + TAG);
  }

  long id(int i) {
    return memory.getLong(at(i) + ID);
  }

  /** The index of a rank's wait, or -1. */
  int indexOf(int rank) {
    for (int i = 0; i < length(); i++) {
      if (waiting(i) == rank) {
        return i;
      }
    }
    return -1;
  }

  /** Whether all waits are in one communicator. */
  boolean isOfOneGroup() {
    for (int i = 1; i < length(); i++) {
      if (!group(i).equals(group(0))) {
        return false;
      }
    }
    return !isMixed();
  }

  /**
   * Who waits for whom: a line for each rank of which the probe holds the wait, in rank order.
   *
   * @param name the name of a world rank
   */
  public String table(IntFunction<String> name) {
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < length(); i++) {
      order.add(i);
    }
    order.sort(Comparator.comparing(this::waiting));
    boolean one = isOfOneGroup();
    StringBuilder text = new StringBuilder();
    for (int i : order) {
      ByteBuffer call = memory.slice(at(i) + CALL, CallRecord.BYTES).order(memory.order());
      text.append("\n  ").append(name.apply(waiting(i))).append(": ");
      text.append(CallRecord.describe(call));
      if (!one) {
        text.append(" of communicator ").append(group(i).context());
      }
      text.append(", waits for ").append(name.apply(awaited(i)));
    }
    if (skipped() > 0) {
      text.append("\n  and ").append(skipped()).append(" more ranks of this cycle");
    }
    return text.toString();
  }

  private static int at(int i) {
    return WAITS + i * WAIT;
  }
}

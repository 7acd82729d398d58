package org.gradientsync.core.group;

import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.diagnosis.DeadlockDetector;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.JobLiveness;
import org.gradientsync.core.ranks.RankMap;

/**
 * What all groups of a job share on this rank: tag ranges, liveness, the deadlock detector, and the
 * list of open groups. Any thread may call this; it takes no group's lock.
 *
 * <p>Each group has its own tag range, so that its messages never match another group's. Closing a
 * group is local, so ranks may release a range at different times.
 */
public final class Job {
  static final int MAX_GROUPS = 1024; // that are open

  private final BitSet contexts = new BitSet(MAX_GROUPS); // the tag ranges in use on this rank
  final Set<Long> callerThreads = ConcurrentHashMap.newKeySet();
  private final Set<ProcessGroup> open = new LinkedHashSet<>();
  final JobLiveness liveness;
  final DeadlockDetector deadlockDetector;
  private volatile int place;
  private final int ranksOnNode;
  private long number; // random, the same on all ranks; 0 before the first split
  private volatile boolean everBroken;
  private boolean taken;
  private Runnable whenUnused = () -> {};
  private volatile boolean ending;
  private volatile boolean goneOn;

  Job(GroupTransport messages) {
    contexts.set(GroupKey.WORLD.context());
    liveness = new JobLiveness(messages.transport());
    RankMap world = messages.ranks();
    deadlockDetector = new DeadlockDetector(messages, this::find, callerThreads, liveness);
    List<Integer> node = world.onNode(world.nodeOf(world.rank()));
    place = node.indexOf(world.rank());
    ranksOnNode = node.size();
  }

  synchronized BitSet usedContexts() {
    return (BitSet) contexts.clone();
  }

  /** Reserves the lowest free tag range from one on. Returns {@link #MAX_GROUPS} if none is. */
  synchronized int reserveFrom(int lowest) {
    int context = contexts.nextClearBit(lowest);
    contexts.set(context, context < MAX_GROUPS);
    return context;
  }

  synchronized boolean tryReserve(int context) {
    boolean free = !contexts.get(context);
    contexts.set(context);
    return free;
  }

  synchronized void release(int context) {
    contexts.clear(context);
  }

  synchronized long number() {
    return number;
  }

  synchronized void setNumber(long random) {
    number = number == 0 ? random : number;
  }

  /** By which this rank has its device: its number on its node, before ranks are lost or join. */
  public int place() {
    return place;
  }

  public void setPlace(int newPlace) {
    place = newPlace;
  }

  public int ranksOnNode() {
    return ranksOnNode;
  }

  synchronized void opened(ProcessGroup group) {
    open.add(group);
  }

  /** A range with pending messages is never used again. */
  void closed(ProcessGroup group, boolean reusable) {
    Runnable next;
    synchronized (this) {
      open.remove(group);
      if (reusable) {
        release(group.parts().key().context());
      } else {
        everBroken = true;
      }
      next = isUnused() ? whenUnused : () -> {};
    }
    next.run();
  }

  /** Whether no group but the world is open. */
  public synchronized boolean isUnused() {
    return open.size() == 1 && open.iterator().next().parts().key().isWorld();
  }

  /** Sets what runs when the last group but the world has closed. */
  public synchronized void whenUnused(Runnable action) {
    whenUnused = action;
  }

  private synchronized List<ProcessGroup> open() {
    return List.copyOf(open);
  }

  /** Changes when this rank begins a call in any group. */
  public long calls() {
    return open().stream().mapToLong(group -> group.parts().calls().begun()).sum();
  }

  private LongWait find(GroupKey key) {
    return open().stream()
        .filter(group -> group.parts().key().equals(key))
        .findFirst()
        .map(group -> group.longWait)
        .orElse(null);
  }

  List<String> linesOfOthers(ProcessGroup group) {
    return open().stream()
        .filter(other -> other != group)
        .flatMap(other -> other.report.lines().stream())
        .toList();
  }

  /** Whether this is the first call: for the group whose ranks agree in the world's place. */
  synchronized boolean takeFirst() {
    boolean first = !taken;
    taken = true;
    return first;
  }

  void goOnWithout(List<Integer> worldRanks) {
    goneOn = true;
    worldRanks.forEach(liveness::leaveBehind);
  }

  /** Whether ranks were left behind, so that each of the others ends by itself. */
  public boolean hasGoneOn() {
    return goneOn;
  }

  /** Whether {@link #leave} was called. No call can finish after that. */
  public boolean isEnding() {
    return ending;
  }

  /**
   * Notifies the other ranks, in every open group of the job, that this rank leaves. Called when
   * the process ends: takes no group's lock and waits for no rank. Pending and later calls of other
   * threads throw. The reason is the failure that ends the whole job, or an empty text. Returns
   * false if a group is or was broken, so that some ranks may never end the job.
   */
  public boolean leave(Departure departure, String reason) {
    boolean sound = !everBroken;
    // Before calls fail: closing their syncs removes the groups without notices.
    List<ProcessGroup> groups = open();
    ending = true;
    deadlockDetector.close(); // the transport may close at any time
    for (ProcessGroup group : groups) {
      try {
        sound &= group.leave(departure, reason);
      } catch (GradientSyncException e) {
        sound = false; // still notify the other groups
      }
    }
    return sound;
  }
}

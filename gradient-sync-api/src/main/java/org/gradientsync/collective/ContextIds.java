package org.gradientsync.collective;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.gradientsync.spi.Transport;

/**
 * Which tag ranges of a job are in use. Each communicator has one, so that its messages never match
 * another's. The ranks agree on the lowest one that is free on all of them; closing a communicator
 * is local, so the ranks may free them at different times.
 */
final class ContextIds {
  /** How many communicators can be open at once. */
  static final int LIMIT = 1024;

  private final BitSet used = new BitSet(LIMIT);
  private final Set<ProcessGroup> open = new LinkedHashSet<>();
  private final BitSet dead = new BitSet();
  private final Transport transport;
  private final DeadlockDetector deadlockDetector;
  private final int ranksOnNode;
  private final int rankOnNode;
  private final Map<Path, Bell> bells = new HashMap<>();
  private long job;
  private boolean everBroken;
  private long generation;
  private long caller; // the number of a thread, if there is one
  private boolean severalCallers;
  private volatile boolean ending;

  ContextIds(Transport transport) {
    this.transport = transport;
    deadlockDetector = new DeadlockDetector(transport, this);
    int node = transport.nodeOf(transport.rank());
    ranksOnNode =
        (int)
            IntStream.range(0, transport.size())
                .filter(rank -> transport.nodeOf(rank) == node)
                .count();
    rankOnNode =
        (int)
            IntStream.range(0, transport.rank())
                .filter(rank -> transport.nodeOf(rank) == node)
                .count();
  }

  /** How many ranks of the job run on this rank's node, itself included. */
  int ranksOnNode() {
    return ranksOnNode;
  }

  /**
   * Gives the job a number, if it has none yet.
   *
   * @param number random, and the same on all ranks
   */
  synchronized void nameJob(long number) {
    job = job == 0 ? number : job;
  }

  /** What wakes the processes of the job whose reports go to a folder. */
  synchronized Bell bell(Path reports) {
    return bells.computeIfAbsent(reports, folder -> new Bell(folder, job, rankOnNode, ranksOnNode));
  }

  /** What looks for ranks that wait for each other. */
  DeadlockDetector deadlockDetector() {
    return deadlockDetector;
  }

  /** The group that is open and goes by this key, or null. */
  synchronized ProcessGroup find(DeadlockDetector.Key key) {
    return open.stream().filter(group -> group.key().equals(key)).findFirst().orElse(null);
  }

  /** Whether a rank of the job hears nothing any more, as far as this one knows. */
  boolean isGone(int worldRank) {
    return !transport.isAlive(worldRank) || hasDied(worldRank) || !reasonOf(worldRank).isEmpty();
  }

  /** Notes that the process ends: no call of it can be answered any more. */
  void end() {
    ending = true;
  }

  /** Whether the process ends, and the others have been told so. */
  boolean isEnding() {
    return ending;
  }

  /** Notes which thread makes calls. */
  synchronized void calledBy(Thread thread) {
    severalCallers |= caller != 0 && caller != thread.getId();
    caller = thread.getId();
  }

  /** Whether one thread alone has made all calls of this rank. */
  synchronized boolean haveOneCaller() {
    return !severalCallers;
  }

  /** A bit for each range in use, for sending to the other ranks. */
  synchronized long[] used() {
    long[] words = new long[LIMIT / Long.SIZE];
    long[] set = used.toLongArray();
    System.arraycopy(set, 0, words, 0, set.length);
    return words;
  }

  /** Reserves a range, if it is not in use. */
  synchronized boolean tryTake(int context) {
    boolean free = !used.get(context);
    used.set(context);
    return free;
  }

  synchronized void giveBack(int context) {
    used.clear(context);
  }

  synchronized void opened(ProcessGroup group, int context) {
    used.set(context);
    open.add(group);
  }

  /** A range whose messages may still be under way is never used again. */
  synchronized void closed(ProcessGroup group, int context, boolean reusable) {
    open.remove(group);
    if (reusable) {
      used.clear(context);
    } else {
      everBroken = true;
    }
  }

  /** Whether a closed group was broken. */
  synchronized boolean everBroken() {
    return everBroken;
  }

  /** The groups that have not been closed. */
  synchronized List<ProcessGroup> open() {
    return List.copyOf(open);
  }

  /** Remembers that a rank of the job has died. */
  synchronized void noteDeath(int worldRank) {
    dead.set(worldRank);
  }

  /** Whether a rank of the job has died, as far as it was noted. */
  synchronized boolean hasDied(int worldRank) {
    return dead.get(worldRank);
  }

  /** Why a rank of the job has left, as it said in any group that is open; or an empty text. */
  String reasonOf(int worldRank) {
    for (ProcessGroup group : open()) {
      String reason = group.isWorld() ? group.departureOf(worldRank) : "";
      if (!reason.isEmpty()) {
        return reason;
      }
    }
    return "";
  }

  /** What a report says besides: a group's own states, and this rank's other groups. */
  List<Supplier<List<String>>> states(ProcessGroup of, List<Supplier<List<String>>> own) {
    List<Supplier<List<String>>> all = new ArrayList<>(own);
    for (ProcessGroup group : open()) {
      if (group != of) {
        all.add(group::lines);
      }
    }
    return all;
  }

  /** A number that no earlier communicator of this rank had. */
  synchronized long generation() {
    return generation;
  }

  synchronized void advanceTo(long newest) {
    generation = Math.max(generation, newest);
  }
}

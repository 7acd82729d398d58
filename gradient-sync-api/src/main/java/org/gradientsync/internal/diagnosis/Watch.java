package org.gradientsync.internal.diagnosis;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.gradientsync.internal.ranks.GroupKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads of this JVM that answer for its ranks when another rank asks for reports, because their
 * own threads may be stuck. One looks at the {@link Bell} of the job. Another looks for messages
 * where there are other nodes: it may have to wait for a thread that is stuck in MPI, and the first
 * must not. They run while there are groups to watch.
 */
public final class Watch {
  /** A group that can be asked for reports. Called by any thread. */
  interface Watched {
    /** What all its ranks call it. */
    GroupKey key();

    /** How many ranks it has. */
    int size();

    /** What notifies this process that the group is asked for reports. */
    Bell bell();

    /** Writes a report if one was asked for. */
    void answerIfAsked();

    /** Answers ranks of other nodes, which ask by messages. */
    void answerMessages();
  }

  /** How often groups that other processes can ask were seen to, and bells looked at. */
  static final AtomicLong PERIODS = new AtomicLong();

  static final AtomicLong LOOKS = new AtomicLong();

  private static final Watch FOLDERS = new Watch("gradient-sync-watch", Watch::answerBells);
  private static final Watch MESSAGES = new Watch("gradient-sync-questions", Watch::answerMessages);
  private static final Logger log = LoggerFactory.getLogger(Watch.class);
  private static final long PERIOD_MILLIS = 250;

  private final Set<Watched> groups = ConcurrentHashMap.newKeySet();
  private final String name;
  private final Consumer<Set<Watched>> task;
  private Thread thread;

  private Watch(String name, Consumer<Set<Watched>> task) {
    this.name = name;
    this.task = task;
  }

  /**
   * Watches a group.
   *
   * @param messages whether it may be asked by messages, too
   */
  public static void add(Watched group, boolean messages) {
    FOLDERS.begin(group);
    if (messages) {
      MESSAGES.begin(group);
    }
  }

  public static void remove(Watched group) {
    FOLDERS.groups.remove(group);
    MESSAGES.groups.remove(group);
  }

  /** Tells all ranks of a group that can be reached that they are asked for reports. */
  static void wake(Watched group) {
    for (Watched other : FOLDERS.groups) {
      if (other.key().equals(group.key())) {
        attempt(other::answerIfAsked);
      }
    }
    if (!isWhole(group, ranksHere(FOLDERS.groups))) {
      group.bell().ring(group.key().id());
    }
  }

  /** Ends what {@link #wake} began. */
  static void rest(Watched group) {
    group.bell().silence(group.key().id());
  }

  private synchronized void begin(Watched group) {
    groups.add(group);
    if (thread == null) {
      thread = new Thread(this::run, name);
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void run() {
    while (!isOver()) {
      try {
        task.accept(groups);
      } catch (OutOfMemoryError e) {
        // in the log, too; there may be some memory the next time
      }
      LockSupport.parkNanos(PERIOD_MILLIS * 1_000_000);
    }
  }

  private static void answerBells(Set<Watched> groups) {
    PERIODS.incrementAndGet();
    Map<GroupKey, Integer> here = ranksHere(groups);
    Map<Path, Set<Long>> rings = new HashMap<>();
    long period = System.currentTimeMillis() / PERIOD_MILLIS;
    for (Watched group : groups) {
      if (!isWhole(group, here)) {
        Bell bell = group.bell();
        Set<Long> ids = rings.computeIfAbsent(bell.place(), place -> look(bell, period));
        if (ids.contains(group.key().id())) {
          attempt(group::answerIfAsked);
        }
      }
    }
  }

  private static Set<Long> look(Bell bell, long period) {
    LOOKS.incrementAndGet();
    try {
      return bell.look(period);
    } catch (RuntimeException e) {
      log.debug("a bell cannot be looked at", e);
      return Set.of();
    }
  }

  /** How many ranks of each group this JVM has. */
  private static Map<GroupKey, Integer> ranksHere(Set<Watched> groups) {
    Map<GroupKey, Integer> ranks = new HashMap<>();
    groups.forEach(group -> ranks.merge(group.key(), 1, Integer::sum));
    return ranks;
  }

  /** Whether all ranks of a group are threads of this JVM, which ask each other. */
  private static boolean isWhole(Watched group, Map<GroupKey, Integer> here) {
    return here.getOrDefault(group.key(), 0) == group.size();
  }

  private static void answerMessages(Set<Watched> groups) {
    groups.forEach(group -> attempt(group::answerMessages));
  }

  private static void attempt(Runnable answer) {
    try {
      answer.run();
    } catch (Throwable e) {
      log.debug("a report cannot be given", e); // of which no job may end
    }
  }

  private synchronized boolean isOver() {
    if (groups.isEmpty()) {
      thread = null;
      return true;
    }
    return false;
  }
}

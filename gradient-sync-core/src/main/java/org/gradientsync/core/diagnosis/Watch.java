package org.gradientsync.core.diagnosis;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.gradientsync.core.ranks.GroupKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads of this JVM that answer requests for reports on behalf of its ranks, whose own threads
 * may be stuck. One thread watches the {@link Bell} of the job. Another receives messages from
 * other nodes: it may block on a thread that is stuck in MPI, which must not stop the first. They
 * run while there are groups to watch.
 */
public final class Watch {
  /** A group that can be asked for reports. Any thread may call it. */
  interface Watched {
    GroupKey key();

    int size();

    /** The bell that wakes this process when reports of the group are requested. */
    Bell bell();

    /** Writes a report if one was requested. */
    void answerIfAsked();

    /** Answers ranks of other nodes, which ask by messages. */
    void answerMessages();
  }

  /** For tests: how often groups were served, and bells checked. */
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
   * @param messages whether ranks may also ask by messages
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

  /** Wakes all reachable ranks of a group. */
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
        // also for the log; there may be memory in the next period
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

  /** The number of ranks of each group in this JVM. */
  private static Map<GroupKey, Integer> ranksHere(Set<Watched> groups) {
    Map<GroupKey, Integer> ranks = new HashMap<>();
    groups.forEach(group -> ranks.merge(group.key(), 1, Integer::sum));
    return ranks;
  }

  /** Whether all ranks of a group are threads of this JVM, which ask each other directly. */
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
      log.debug("a report cannot be given", e); // a failed report must not end the job
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

package org.gradientsync.collective;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads of this JVM that answer for its ranks when another rank asks for reports, because their
 * own threads may be stuck. One looks for folders. Another looks for messages where there are other
 * nodes: it may have to wait for a thread that is stuck in MPI, and the first must not. They run
 * while there are groups to watch.
 */
final class Watch {
  private static final Watch FOLDERS = new Watch("gradient-sync-watch", Group::answerIfAsked);
  private static final Watch MESSAGES = new Watch("gradient-sync-questions", Group::answerMessages);
  private static final Logger log = LoggerFactory.getLogger(Watch.class);
  private static final long PERIOD_NANOS = 250_000_000;

  private final Set<Group> groups = ConcurrentHashMap.newKeySet();
  private final String name;
  private final Consumer<Group> task;
  private Thread thread;

  private Watch(String name, Consumer<Group> task) {
    this.name = name;
    this.task = task;
  }

  /**
   * Watches a group.
   *
   * @param messages whether it may be asked by messages, too
   */
  static void add(Group group, boolean messages) {
    FOLDERS.begin(group);
    if (messages) {
      MESSAGES.begin(group);
    }
  }

  static void remove(Group group) {
    FOLDERS.groups.remove(group);
    MESSAGES.groups.remove(group);
  }

  private synchronized void begin(Group group) {
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
        groups.forEach(this::look);
      } catch (OutOfMemoryError e) {
        // in the log, too; there may be some memory the next time
      }
      LockSupport.parkNanos(PERIOD_NANOS);
    }
  }

  private void look(Group group) {
    try {
      task.accept(group);
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

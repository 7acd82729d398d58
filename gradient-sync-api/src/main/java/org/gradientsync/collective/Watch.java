package org.gradientsync.collective;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One thread of this JVM that answers for its ranks when another rank asks for reports, by a folder
 * or by a message, because their own threads may be stuck. It runs while there is a group of more
 * than one rank.
 */
final class Watch {
  private static final Logger log = LoggerFactory.getLogger(Watch.class);
  private static final long PERIOD_NANOS = 250_000_000;
  private static final Set<Group> GROUPS = ConcurrentHashMap.newKeySet();
  private static Thread thread;

  private Watch() {}

  static synchronized void add(Group group) {
    GROUPS.add(group);
    if (thread == null) {
      thread = new Thread(Watch::run, "gradient-sync-watch");
      thread.setDaemon(true);
      thread.start();
    }
  }

  static void remove(Group group) {
    GROUPS.remove(group);
  }

  private static void run() {
    while (!isOver()) {
      GROUPS.forEach(Watch::look);
      LockSupport.parkNanos(PERIOD_NANOS);
    }
  }

  private static void look(Group group) {
    try {
      group.answerIfAsked();
    } catch (Throwable e) {
      log.debug("a report cannot be written", e); // of which no job may end
    }
  }

  private static synchronized boolean isOver() {
    if (GROUPS.isEmpty()) {
      thread = null;
      return true;
    }
    return false;
  }
}

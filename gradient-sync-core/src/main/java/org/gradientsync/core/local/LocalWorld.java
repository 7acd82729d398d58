package org.gradientsync.core.local;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.group.ProcessGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The group of ranks to which a thread of this JVM belongs if no launcher has started the process.
 */
public final class LocalWorld {
  private static final Logger log = LoggerFactory.getLogger("org.gradientsync.local.LocalRanks");
  private static final ThreadLocal<ProcessGroup> CURRENT = new ThreadLocal<>();
  private static final AtomicInteger RUNNING = new AtomicInteger();

  private LocalWorld() {}

  /** Runs the ranks of one {@code LocalRanks.run}, and counts that run while it lasts. */
  public static void duringRun(Runnable run) {
    RUNNING.incrementAndGet();
    try {
      run.run();
    } finally {
      RUNNING.decrementAndGet();
    }
  }

  /** Makes the calling thread a rank: a sync that it creates joins the others. */
  public static void enter(ProcessGroup world) {
    CURRENT.set(world);
  }

  /** {@return all ranks of the run, or empty if the calling thread is not a rank of one} */
  public static Optional<ProcessGroup> current() {
    return Optional.ofNullable(CURRENT.get());
  }

  /** Creates a job of one rank, for a thread that is not a rank. */
  public static ProcessGroup single() {
    if (RUNNING.get() > 0) {
      log.warn(
          "a sync of one rank is made by thread \"{}\", which is not a rank's, while LocalRanks.run"
              + " has ranks: it averages with nobody; make it on the rank's own thread, or use the"
              + " sync that the task is given",
          Thread.currentThread().getName());
    }
    return ProcessGroup.world(new LocalTransport(new LocalGroup(1), 0));
  }
}

package org.gradientsync.core.launch;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;

/** The groups of all ranks of the jobs that launchers started. */
public final class LaunchedJob {
  private static final Map<Transport, ProcessGroup> WORLDS = new IdentityHashMap<>();

  private LaunchedJob() {}

  /**
   * Joins the job that a launcher started, or returns the group of an earlier call.
   *
   * @param launcher can join it
   * @return all ranks of the job; stays open until the JVM exits, or until the last group of a rank
   *     closes that is no process
   */
  public static ProcessGroup connect(Launcher launcher, Settings settings) {
    JobEnd end = null;
    if (launcher.launched()) { // otherwise a rank may be one of many threads of a program
      JobEnd.waitAsLongAs(settings.timeouts(), settings.shutdownGrace());
      end = JobEnd.install();
    }
    Transport transport =
        Objects.requireNonNull(launcher.connect(settings), "transport of " + launcher.name());
    try {
      return join(transport, settings, end);
    } catch (RuntimeException | Error e) {
      boolean joined;
      synchronized (WORLDS) {
        joined = WORLDS.containsKey(transport);
      }
      // A process stays in its job until it ends.
      Resources.closeAllAfter(e, joined || transport.process().isPresent() ? null : transport);
      throw e;
    }
  }

  private static ProcessGroup join(Transport transport, Settings settings, JobEnd end) {
    if (transport.rank() < 0 || transport.rank() >= transport.size()) {
      throw new IllegalArgumentException(
          "not a rank of its job: launcher=%s, rank=%s, size=%s"
              .formatted(transport.name(), transport.rank(), transport.size()));
    }
    if (settings.elastic()) {
      transport.goOnWithout(List.of()); // throws if it cannot
      JobEnd.letRanksEndAlone();
    }
    synchronized (WORLDS) {
      ProcessGroup world = WORLDS.get(transport);
      if (world == null) {
        world = ProcessGroup.world(transport);
        WORLDS.put(transport, world);
        if (end != null) {
          end.joined(transport.process(), world);
        }
        ProcessGroup made = world;
        if (transport.process().isEmpty()) {
          world.job().whenUnused(() -> closeIfUnused(made));
        }
      }
      return world;
    }
  }

  /** Leaves a group's job for another that this rank has joined. Returns all ranks of the other. */
  public static ProcessGroup follow(ProcessGroup earlier, Transport joined) {
    synchronized (WORLDS) {
      ProcessGroup before = WORLDS.remove(earlier.transport());
      ProcessGroup world = ProcessGroup.world(joined);
      WORLDS.put(joined, world);
      world.job().setPlace(earlier.job().place());
      if (joined.process().isPresent()) {
        JobEnd.install().follow(joined.process().get(), world);
      } else {
        world.job().whenUnused(() -> closeIfUnused(world));
      }
      before.job().whenUnused(before::close); // once its last sync has closed
      return world;
    }
  }

  /** Leaves the job if this rank is no process and has no other groups. */
  public static void closeIfUnused(ProcessGroup world) {
    Transport transport = world.transport();
    synchronized (WORLDS) {
      if (WORLDS.get(transport) != world
          || transport.process().isPresent()
          || !world.job().isUnused()) {
        return;
      }
      WORLDS.remove(transport);
    }
    world.close();
  }
}

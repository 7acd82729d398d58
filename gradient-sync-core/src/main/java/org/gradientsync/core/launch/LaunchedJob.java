package org.gradientsync.core.launch;

import java.util.IdentityHashMap;
import java.util.Map;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;

/** The groups of all ranks of the jobs that launchers started. */
public final class LaunchedJob {
  private static final Map<Transport, ProcessGroup> WORLDS = new IdentityHashMap<>();

  private LaunchedJob() {}

  /**
   * Joins the job that a launcher started, or returns the group of an earlier call.
   *
   * @param launcher has started this process
   * @param settings the user's
   * @return all ranks of the job; stays open until the JVM exits
   */
  public static ProcessGroup connect(Launcher launcher, Settings settings) {
    JobEnd.waitAsLongAs(settings.timeouts(), settings.shutdownGrace());
    JobEnd end = JobEnd.install();
    Transport transport = launcher.connect(settings);
    synchronized (WORLDS) {
      ProcessGroup world = WORLDS.get(transport);
      if (world == null) {
        world = ProcessGroup.world(transport);
        WORLDS.put(transport, world);
        end.joined(transport.process(), world);
      }
      return world;
    }
  }
}

package org.gradientsync.mpi;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.binding.MpiJob;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Joins the ranks that mpirun started.
 *
 * <p>The first sync initializes MPI, and the exit of the JVM finalizes it. If the program has
 * initialized MPI, it also finalizes it. An uncaught exception ends the whole job, because the
 * other ranks would wait for this one until they time out.
 */
public final class MpiLauncher implements Launcher {
  static final String NAME = "mpi";

  private static final Logger log = LoggerFactory.getLogger(MpiLauncher.class);
  private static MpiTransport world;

  /** For the service loader. */
  public MpiLauncher() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<String> settings() {
    return Set.of(MpiBinding.SETTING);
  }

  @Override
  public boolean launched() {
    LauncherVariables variables = LauncherVariables.ofProcess();
    return variables.areForOpenMpi()
        || variables.areForMpich() && !MpiBinding.isJava(new Settings(Map.of()));
  }

  @Override
  public Transport connect(Settings settings) {
    synchronized (MpiLauncher.class) {
      if (world == null) {
        world = join(settings);
      }
      return world;
    }
  }

  private static MpiTransport join(Settings settings) {
    MpiCalls calls = MpiBinding.get(settings);
    MpiJob mpi;
    try {
      mpi = MpiJob.connect(calls, settings.timeouts());
    } catch (LinkageError e) {
      throw new UnavailableException(
          "Open MPI's Java bindings do not load: "
              + e.getMessage()
              + "; mpi.jar and libmpi_java must be of the same Open MPI installation, the one of"
              + " mpirun",
          e);
    }
    int[] nodes = mpi.nodes();
    int localRank =
        (int) IntStream.range(0, mpi.rank()).filter(i -> nodes[i] == nodes[mpi.rank()]).count();
    Optional<String> misplaced = mpi.misplaced();
    if (misplaced.isEmpty()) {
      LocalRankCheck.warning(LauncherVariables.environment(), mpi.rank(), localRank)
          .ifPresent(log::warn);
    } else if (mpi.rank() == 0) { // once in a job
      log.warn(misplaced.get());
    }
    log.debug(
        "rank {}: {}, library={}, calls={}, started here={}",
        mpi.rank(),
        mpi.version(),
        calls.library(),
        calls.getClass().getSimpleName(),
        mpi.isOwner());
    return new MpiTransport(mpi);
  }
}

package org.gradientsync.mpi.binding;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.mpi.openmpi.UsersMpi;

/**
 * The program of a job in which rank 1 is stopped before a call of MPI, at the start or at the end
 * of the job.
 *
 * <p>Arguments: {@code FOLDER CALL THREADS}. With {@code one} the program starts MPI itself, for
 * one thread only; with {@code one-and-end} it also ends it.
 */
public final class LosingStart {
  private LosingStart() {}

  public static void main(String[] args) throws Exception {
    int rank = Integer.parseInt(System.getenv("OMPI_COMM_WORLD_RANK"));
    int size = Integer.parseInt(System.getenv("OMPI_COMM_WORLD_SIZE"));
    if (args[2].startsWith("one")) {
      UsersMpi.startForOneThread();
    }
    if (rank == 1) {
      MpiStart.beforeCall = call -> stopBefore(call, args[1]);
    }
    awaitAll(Path.of(args[0]), rank, size); // so that the machine's speed does not matter
    try (GradientSync sync = create()) {
      System.out.println("created " + sync.rank());
      sync.barrier();
    } catch (RankLostException e) {
      System.out.println("caught " + e.getMessage());
      try {
        create();
      } catch (RankLostException again) {
        System.out.println("again " + again.getMessage());
      }
      throw e;
    }
    if (args[2].equals("one-and-end")) {
      UsersMpi.stop();
    }
  }

  private static GradientSync create() {
    return GradientSync.builder()
        .reducer("mpi")
        .timeout(Duration.ofSeconds(5))
        .set("dev.late", "3") // MPI has started by then, even beside other jobs
        .create();
  }

  private static void awaitAll(Path folder, int rank, int size)
      throws IOException, InterruptedException {
    Files.createFile(folder.resolve("rank-" + rank));
    for (int peer = 0; peer < size; peer++) {
      while (Files.notExists(folder.resolve("rank-" + peer))) {
        Thread.sleep(10);
      }
    }
  }

  private static void stopBefore(String call, String last) {
    if (!call.equals(last)) {
      return;
    }
    try {
      new ProcessBuilder("kill", "-STOP", Long.toString(ProcessHandle.current().pid()))
          .inheritIO()
          .start()
          .waitFor();
      Thread.sleep(300_000); // the signal takes effect any moment
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}

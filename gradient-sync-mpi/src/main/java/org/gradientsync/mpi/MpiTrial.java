package org.gradientsync.mpi;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.binding.MpiJob;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;

/**
 * Tests an installation of Open MPI in a separate process, because an unsuitable library can crash
 * the JVM that loads it. Only {@link #main} loads MPI.
 */
public final class MpiTrial {
  /** The argument that makes {@link #main} test device memory. */
  public static final String CUDA_AWARE = "cuda-aware";

  private static final Duration LIMIT = Duration.ofSeconds(30);

  private MpiTrial() {}

  /**
   * Checks that {@code mpi.jar} is on the class path and {@code libmpi_java} on the library path.
   * They may still fail to load.
   *
   * @param libraryPath folders in the format of {@code java.library.path}
   * @return usable, or which file is missing
   */
  public static Availability files(String libraryPath) {
    return MpiLibrary.check(MpiTrial.class.getClassLoader(), libraryPath);
  }

  /**
   * {@return whether ranks call MPI through its Java bindings here, because they are asked for or
   * would be chosen, and not through its C library}
   */
  public static boolean takesJavaBindings() {
    return MpiBinding.isJava(new Settings(Map.of()));
  }

  /**
   * Removes the variables from an environment that make a process a rank of this job. Keeps MPI's
   * settings.
   *
   * @param environment the environment of a process to start
   */
  public static void forgetJob(Map<String, String> environment) {
    CudaAwareProbe.forgetJob(environment);
  }

  /**
   * The program of the separate process. It starts MPI as a job of its own, prints the version and
   * whether MPI reports support for device memory, and exits with code 0. Any other end is a
   * failure.
   *
   * @param args {@link #CUDA_AWARE} to send device memory to itself instead
   */
  public static void main(String[] args) {
    if (args.length > 0 && args[0].equals(CUDA_AWARE)) {
      CudaAwareProbe.main(new String[0]);
      return;
    }
    MpiCalls calls = MpiBinding.get(new Settings(Map.of()));
    MpiJob.connect(calls, new Timeouts(LIMIT, LIMIT, Optional.empty()));
    System.out.println("version=" + calls.version());
    Availability support = CudaAwareness.ask();
    System.out.println("says=" + (support.usable() ? "yes" : "no: " + support.reason()));
    System.out.flush();
    // Does not return, because finalizing MPI must not affect the result.
    Runtime.getRuntime().halt(0);
  }
}

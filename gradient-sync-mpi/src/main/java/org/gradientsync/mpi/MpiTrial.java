package org.gradientsync.mpi;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.mpi.binding.OpenMpi;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Timeouts;

/**
 * For finding out what is wrong with an installation: tries Open MPI in a process of its own,
 * because a library that does not fit can end the JVM that loads it. Nothing here loads MPI but
 * {@link #main}.
 */
public final class MpiTrial {
  /** The argument of {@link #main} that asks for sending device memory, too. */
  public static final String CUDA_AWARE = "cuda-aware";

  private static final Duration LIMIT = Duration.ofSeconds(30);

  private MpiTrial() {}

  /**
   * Whether {@code mpi.jar} and {@code libmpi_java} are where they are looked for. They may not
   * load all the same.
   *
   * @param libraryPath where the library is looked for, as in {@code java.library.path}
   * @return usable, or what is missing
   */
  public static Availability files(String libraryPath) {
    return MpiLibrary.check(MpiTrial.class.getClassLoader(), libraryPath);
  }

  /**
   * Takes out of an environment what tells a process that it is a rank of this one's job; the same
   * settings stay.
   *
   * @param environment of a process that is to be started
   */
  public static void forgetJob(Map<String, String> environment) {
    CudaAwareProbe.forgetJob(environment);
  }

  /**
   * The process that tries. It starts MPI as a job of its own, prints the version and whether this
   * MPI says that it takes device memory, and ends with code 0; or fails, in whatever way.
   *
   * @param args {@link #CUDA_AWARE} for sending device memory to itself, instead of printing
   */
  public static void main(String[] args) {
    if (args.length > 0 && args[0].equals(CUDA_AWARE)) {
      CudaAwareProbe.main(new String[0]);
      return;
    }
    OpenMpi.connect(new Timeouts(LIMIT, LIMIT, Optional.empty()));
    System.out.println("version=" + OpenMpi.version());
    Availability says = CudaAwareness.ask();
    System.out.println("says=" + (says.usable() ? "yes" : "no: " + says.reason()));
    System.out.flush();
    // Not by returning: how MPI ends is not in question here, and must not decide.
    Runtime.getRuntime().halt(0);
  }
}

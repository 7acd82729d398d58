package org.gradientsync.mpi;

import java.io.File;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.core.backend.NativeClasses;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.direct.DirectLibrary;
import org.gradientsync.mpi.openmpi.JavaBindings;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses how this process calls MPI: through Open MPI's Java bindings if {@code mpi.jar} is there
 * and no other class loader has loaded them, otherwise by its C library. The setting {@value
 * #SETTING} names one, or a library's path.
 */
final class MpiBinding {
  static final String SETTING = "mpi.binding";

  private static final String PROPERTY = "gradientsync." + SETTING;
  private static final String JAVA = "java";
  private static final String DIRECT = "direct";

  private static final Logger log = LoggerFactory.getLogger(MpiBinding.class);

  private static MpiCalls chosen; // or null

  private MpiBinding() {}

  /**
   * The functions of MPI, the same ones at each call.
   *
   * @throws UnavailableException if they cannot be used; the message is one line that says why
   */
  static synchronized MpiCalls get(Settings settings) {
    if (chosen == null) {
      String asked = asked(settings);
      chosen = isJava(asked) ? bindings(asked) : direct(asked.equals(DIRECT) ? "" : asked);
    }
    return chosen;
  }

  /** The name of the C library that {@link #get} has chosen, or of Open MPI's. */
  static synchronized String library() {
    return chosen == null ? new JavaBindings().library() : chosen.library();
  }

  /** Whether {@link #get} takes the Java bindings, if they are usable. */
  static boolean isJava(Settings settings) {
    return isJava(asked(settings));
  }

  private static boolean isJava(String asked) {
    return asked.equals(JAVA)
        || asked.isEmpty() && MpiLibrary.hasJar(MpiBinding.class.getClassLoader());
  }

  private static String asked(Settings settings) {
    String asked = settings.get(SETTING).orElse("");
    if (asked.isEmpty()
        || asked.equals(JAVA)
        || asked.equals(DIRECT)
        || asked.contains(File.separator)) {
      return asked;
    }
    throw new IllegalArgumentException(
        "no way to call MPI: %s=%s; give java, direct, the path of a libmpi, or nothing"
            .formatted(PROPERTY, asked));
  }

  private static MpiCalls direct(String library) {
    return DirectLibrary.ofProcess().get(library, PROPERTY, LauncherVariables.environment());
  }

  private static MpiCalls bindings(String asked) {
    ClassLoader loader = MpiBinding.class.getClassLoader();
    Availability library = MpiLibrary.check(loader, System.getProperty("java.library.path", ""));
    if (!library.usable()) {
      throw new UnavailableException(
          "Open MPI's Java bindings cannot be used: " + library.reason());
    }
    MpiLibrary.makeReadable(loader);
    String failure = NativeClasses.failure("mpi.MPI", MpiBinding.class);
    if (failure == null) {
      return new JavaBindings();
    }
    if (!failure.contains("already loaded in another class")) {
      throw new UnavailableException(
          "Open MPI's Java bindings do not load: " + failure + advice(failure));
    }
    if (asked.isEmpty()) {
      log.debug("calls go to MPI's C library: another class loader has the Java bindings");
      return direct("");
    }
    throw new UnavailableException(
        "Open MPI's Java bindings cannot be used: another class loader of this process has loaded"
            + " libmpi_java, and a JVM loads a library for one class loader only; set "
            + PROPERTY
            + "=direct or leave it out, or load mpi.jar with a class loader that all its users"
            + " share");
  }

  private static String advice(String failure) {
    return failure.contains("; ")
        ? "" // it says what to do
        : "; mpi.jar and libmpi_java must be of the same Open MPI installation, the one of mpirun";
  }

  /** The option with which a child process makes the same choice, after {@link #get}. */
  static synchronized String option() {
    String value = chosen == null || chosen instanceof JavaBindings ? JAVA : chosen.library();
    return "-D%s=%s"
        .formatted(PROPERTY, value.equals(JAVA) || value.contains(File.separator) ? value : DIRECT);
  }
}

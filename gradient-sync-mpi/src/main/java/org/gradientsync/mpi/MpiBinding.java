package org.gradientsync.mpi;

import java.io.File;
import org.gradientsync.UnavailableException;
import org.gradientsync.internal.launch.LauncherVariables;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.direct.DirectLibrary;
import org.gradientsync.mpi.openmpi.JavaBindings;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Settings;

/**
 * Chooses how this process calls MPI: through Open MPI's Java bindings if {@code mpi.jar} is there,
 * otherwise by its C library. The setting {@value #SETTING} names one, or a library's path.
 */
final class MpiBinding {
  static final String SETTING = "mpi.binding";

  private static final String PROPERTY = "gradientsync." + SETTING;
  private static final String JAVA = "java";
  private static final String DIRECT = "direct";

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
      chosen =
          isJava(asked)
              ? bindings()
              : DirectLibrary.ofProcess()
                  .get(
                      asked.equals(DIRECT) ? "" : asked, PROPERTY, LauncherVariables.environment());
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
        "no way to call MPI: "
            + PROPERTY
            + "="
            + asked
            + "; give java, direct, the path of a libmpi, or nothing");
  }

  private static MpiCalls bindings() {
    ClassLoader loader = MpiBinding.class.getClassLoader();
    Availability library = MpiLibrary.check(loader, System.getProperty("java.library.path", ""));
    if (!library.usable()) {
      throw new UnavailableException(
          "Open MPI's Java bindings cannot be used: " + library.reason());
    }
    MpiLibrary.makeReadable(loader);
    return new JavaBindings();
  }

  /** The option with which a child process makes the same choice, after {@link #get}. */
  static synchronized String option() {
    String value = chosen == null || chosen instanceof JavaBindings ? JAVA : chosen.library();
    return "-D"
        + PROPERTY
        + "="
        + (value.equals(JAVA) || value.contains(File.separator) ? value : DIRECT);
  }
}

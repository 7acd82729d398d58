package org.gradientsync.tools.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.SearchPath;
import org.gradientsync.tools.program.ToolException;

/** Which MPI library the ranks will load, and whether it is the launcher's. */
final class JavaBindings {
  private static final String FILE = System.mapLibraryName("mpi_java");
  private static final String OMPI_INFO = "ompi_info";
  private static final String LIBRARY_PATH = "-Djava.library.path=";
  private static final String BINDING = "-Dgradientsync.mpi.binding=";

  private JavaBindings() {}

  /**
   * Returns the folder of this Open MPI's libmpi_java if the ranks use it, or empty if they call
   * the C library or another launcher starts them.
   */
  static Optional<Path> folder(
      MpiInstallation mpi, ProgramFiles program, List<String> jvmOptions, String libraryPath) {
    String binding = binding(jvmOptions);
    requireOfLauncher(mpi, binding);
    if (mpi.kind() == LauncherKind.HYDRA && binding.equals("java")) {
      throw ToolException.badUse(
          "Open MPI's Java bindings take ranks of Open MPI's mpirun only: launcher=%s; leave"
              + " %sjava out, or choose an Open MPI by --launcher",
          mpi, BINDING);
    }
    if (mpi.kind() == LauncherKind.HYDRA
        || !program.mpiJar().isThere()
        || !binding.isEmpty() && !binding.equals("java")) {
      return Optional.empty();
    }
    Path installed = ofInstallation(mpi);
    Optional<Path> own = Optional.ofNullable(installed).filter(JavaBindings::hasBindings);
    Optional<String> users = last(jvmOptions, LIBRARY_PATH); // wins over LD_LIBRARY_PATH
    Optional<Path> loaded =
        users.isPresent() ? search(users.get()) : own.or(() -> search(libraryPath));
    loaded.ifPresent(folder -> requireFit(mpi, program.mpiJar(), folder.resolve(FILE)));
    if (own.isPresent()
        || loaded.isPresent()
        || users.isPresent()
        || mpi.kind() == LauncherKind.SLURM) { // the MPI of the ranks is found by themselves
      return own;
    }
    throw ToolException.cannotRun(
        "mpi.jar is on the class path, but this mpirun's Open MPI has no %s: launcher=%s, looked"
            + " in=%s; install it, leave mpi.jar off the class path, or add %sdirect",
        FILE, mpi, installed == null ? "nothing that ompi_info names" : installed, BINDING);
  }

  /** Returns the user's choice, or the empty string. */
  static String binding(List<String> jvmOptions) {
    return last(jvmOptions, BINDING).orElse("");
  }

  private static Optional<String> last(List<String> jvmOptions, String start) {
    return jvmOptions.stream()
        .filter(option -> option.startsWith(start))
        .map(option -> option.substring(start.length()))
        .reduce((first, last) -> last);
  }

  private static Optional<Path> search(String path) {
    return SearchPath.find(path, FILE).findFirst().map(Path::getParent);
  }

  private static boolean hasBindings(Path folder) {
    return Files.exists(folder.resolve(FILE));
  }

  private static void requireFit(MpiInstallation mpi, MpiJar jar, Path library) {
    jar.missingIn(library)
        .ifPresent(
            function -> {
              throw ToolException.cannotRun(
                  "mpi.jar and %s are of different releases of Open MPI: file=%s needs %s, which"
                      + " is not in %s; give the mpi.jar of %s, as docs/open-mpi.md says, or"
                      + " leave mpi.jar out",
                  FILE, jar.file(), function, library, mpi);
            });
  }

  /** Refuses a library that the user has named and that is of another MPI, by its name. */
  private static void requireOfLauncher(MpiInstallation mpi, String binding) {
    String file = String.valueOf(Path.of(binding).getFileName());
    boolean isOpenMpi = file.startsWith("libmpi.so.40");
    boolean isMpich = file.startsWith("libmpi.so.12") || file.startsWith("libmpich.so");
    if (mpi.kind() == LauncherKind.OPEN_MPI && isMpich
        || mpi.kind() == LauncherKind.HYDRA && isOpenMpi) {
      throw ToolException.badUse(
          "the launcher and the library are of different MPIs: launcher=%s, library=%s; choose"
              + " the %s of the library by --launcher, or leave %s out",
          mpi, binding, isOpenMpi ? LauncherKind.OPEN_MPI : LauncherKind.HYDRA, BINDING);
    }
  }

  private static Path ofInstallation(MpiInstallation mpi) {
    Optional<String> beside =
        mpi.places().stream()
            .map(place -> place.resolveSibling(OMPI_INFO))
            .filter(Files::isExecutable)
            .map(Path::toString)
            .findFirst();
    if (beside.isEmpty()
        && mpi.kind() == LauncherKind.OPEN_MPI
        && !ChildProcess.ask(OMPI_INFO, "--version").output().contains(" v" + mpi.version())) {
      return null; // that of another Open MPI
    }
    String program = beside.orElse(OMPI_INFO);
    String folder =
        ChildProcess.ask(program, "--path", "libdir", "--parsable").after("path:libdir:");
    return folder.isEmpty() ? null : Path.of(folder);
  }
}

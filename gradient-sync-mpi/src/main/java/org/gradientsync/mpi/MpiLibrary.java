package org.gradientsync.mpi;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;

/**
 * Looks for Open MPI's native library before its classes are loaded: without the library, loading
 * {@code mpi.MPI} can crash the JVM.
 */
final class MpiLibrary {
  private static final String FILE = System.mapLibraryName("mpi_java");

  private MpiLibrary() {}

  static boolean hasJar(ClassLoader loader) {
    return loader.getResource("mpi/MPI.class") != null;
  }

  static Availability check(ClassLoader loader, String libraryPath) {
    if (!hasJar(loader)) {
      return Availability.no(
          "mpi.jar is not on the class path; it belongs to the Open MPI installation that mpirun is"
              + " of: docs/open-mpi.md says where it is");
    }
    for (String folder : libraryPath.split(File.pathSeparator)) {
      if (!folder.isEmpty() && Files.exists(Path.of(folder, FILE))) {
        return Availability.yes();
      }
    }
    return Availability.no(
        FILE
            + " is not in java.library.path="
            + libraryPath
            + "; start java with -Djava.library.path=DIR or LD_LIBRARY_PATH=DIR, DIR being Open"
            + " MPI's lib folder, or set gradientsync.mpi.binding=direct");
  }

  /**
   * Makes this module read the module of mpi.jar, whose name depends on the file's name, or the
   * class path. Does not load native libraries.
   */
  static void makeReadable(ClassLoader loader) {
    try {
      MpiLibrary.class.getModule().addReads(Class.forName("mpi.MPI", false, loader).getModule());
    } catch (ClassNotFoundException e) {
      throw new UnavailableException("mpi.jar has no class mpi.MPI", e);
    }
  }
}

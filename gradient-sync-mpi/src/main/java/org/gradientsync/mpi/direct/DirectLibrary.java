package org.gradientsync.mpi.direct;

import java.util.Map;
import java.util.function.Function;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.LoaderMessage;
import org.gradientsync.mpi.binding.MpiCalls;

/** Finds the C library of the MPI that this process's launcher belongs to, and loads it once. */
public final class DirectLibrary {
  private static final DirectLibrary OF_PROCESS = new DirectLibrary(DirectMpi::load);

  private final Function<String, DirectMpi> loader;
  private DirectMpi loaded; // or null

  /**
   * @param loader loads a library by path or name, or throws an {@link UnsatisfiedLinkError}
   */
  DirectLibrary(Function<String, DirectMpi> loader) {
    this.loader = loader;
  }

  /** {@return this process's library, the same one at each call} */
  public static DirectLibrary ofProcess() {
    return OF_PROCESS;
  }

  /**
   * The functions of the library.
   *
   * @param asked the library's path as the user has set it, or an empty text to look for it
   * @param setting the setting's name, for texts
   * @param environment the variables of this process
   * @return the functions, whose library may still be unable to join the other ranks
   * @throws UnavailableException if there is none that can be used
   */
  public synchronized MpiCalls get(String asked, String setting, Map<String, String> environment) {
    if (loaded == null) {
      LibrarySearch search = LibrarySearch.ofProcess(environment);
      DirectMpi found = asked.isEmpty() ? find(search, setting) : named(asked, setting);
      requireSameKind(found, search, setting);
      loaded = found;
    } else if (!asked.isEmpty() && !asked.equals(loaded.library())) {
      throw new UnavailableException(
          "this process has loaded another MPI: %s=%s, loaded=%s"
              .formatted(setting, asked, loaded.library()));
    }
    return loaded;
  }

  private DirectMpi named(String asked, String setting) {
    try {
      return loader.apply(asked);
    } catch (UnsatisfiedLinkError e) {
      throw new UnavailableException(
          "this MPI does not load: %s=%s, reason=%s"
              .formatted(setting, asked, LoaderMessage.reason(e)),
          e);
    }
  }

  private DirectMpi find(LibrarySearch search, String setting) {
    UnsatisfiedLinkError reason = null;
    for (String candidate : search.candidates()) {
      try {
        return loader.apply(candidate);
      } catch (UnsatisfiedLinkError e) {
        reason = reason == null ? e : reason;
      }
    }
    String kind = search.launcher();
    String missing =
        kind.isEmpty()
            ? "there is no MPI: "
            : "there is no MPI of the kind that started this rank: launcher=" + kind + ", ";
    throw new UnavailableException(
        missing
            + "libraries="
            + String.join(" or ", search.names())
            + ", reason="
            + LoaderMessage.reason(reason)
            + "; install it, add its folder to LD_LIBRARY_PATH, or set "
            + setting
            + " to its path",
        reason);
  }

  /** With the library of another MPI, each process would be a job of its own. */
  private static void requireSameKind(DirectMpi found, LibrarySearch search, String setting) {
    String kind = search.launcher();
    boolean open = found.version().startsWith(OpenMpiAbi.NAME);
    if (!kind.isEmpty() && open != kind.equals(OpenMpiAbi.NAME)) {
      throw new UnavailableException(
          ("the launcher and the library are of different MPIs: launcher=%s, library=%s,"
                  + " version=%s; start the job with the mpirun of that library,"
                  + " or set %s to the library of that launcher")
              .formatted(kind, found.library(), found.version(), setting));
    }
  }
}

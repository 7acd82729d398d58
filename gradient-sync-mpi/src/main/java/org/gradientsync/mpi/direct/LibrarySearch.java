package org.gradientsync.mpi.direct;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Where the C library of an MPI may be. The launcher's own installation comes first, then {@code
 * java.library.path}, which begins with {@code LD_LIBRARY_PATH}, and then what the system's loader
 * finds. Names without a version are left out: each MPI has them.
 */
final class LibrarySearch {
  private static final List<String> OPEN_MPI = List.of("libmpi.so.40");
  private static final List<String> MPICH = List.of("libmpi.so.12", "libmpich.so.12");
  private static final List<String> STANDARD = List.of("libmpi_abi.so.1");

  /** The programs of MPICH's launcher that run above a rank. */
  private static final Set<String> HYDRA = Set.of("mpiexec.hydra", "hydra_pmi_proxy");

  private static final Set<String> OTHER_LAUNCHERS =
      Set.of("orterun", "orted", "prterun", "prte", "prted", "mpirun", "mpiexec");

  private final Map<String, String> environment;
  private final List<Path> programs;
  private final String libraryPath;

  /**
   * @param programs the executables of the processes above this one, the nearest first
   * @param libraryPath folders in the format of {@code java.library.path}
   */
  LibrarySearch(Map<String, String> environment, List<Path> programs, String libraryPath) {
    this.environment = environment;
    this.programs = programs;
    this.libraryPath = libraryPath;
  }

  static LibrarySearch ofProcess(Map<String, String> environment) {
    List<Path> programs = new ArrayList<>();
    Optional<ProcessHandle> process = ProcessHandle.current().parent();
    while (process.isPresent()) {
      process.get().info().command().map(Path::of).ifPresent(programs::add);
      process = process.get().parent();
    }
    return new LibrarySearch(environment, programs, System.getProperty("java.library.path", ""));
  }

  /**
   * The kind of MPI whose launcher has set variables, or an empty text. Slurm sets those of MPICH's
   * launcher, too, for every MPI that was built for its PMI.
   */
  String launcher() {
    if (environment.containsKey("OMPI_COMM_WORLD_SIZE")) {
      return OpenMpiAbi.NAME;
    }
    boolean bySlurm = environment.containsKey("SLURM_PROCID");
    return environment.containsKey("PMI_SIZE") && (isBelowHydra() || !bySlurm) ? MpichAbi.NAME : "";
  }

  private boolean isBelowHydra() {
    return programs.stream().anyMatch(program -> HYDRA.contains(nameOf(program)));
  }

  private static String nameOf(Path program) {
    return String.valueOf(program.getFileName());
  }

  /** The files' names, those of this launcher's kind only. */
  List<String> names() {
    List<String> names = new ArrayList<>();
    if (!launcher().equals(MpichAbi.NAME)) {
      names.addAll(OPEN_MPI);
    }
    if (!launcher().equals(OpenMpiAbi.NAME)) {
      names.addAll(MPICH);
    }
    names.addAll(STANDARD);
    return names;
  }

  /** Paths of files that exist, and then names for the system's loader. */
  Set<String> candidates() {
    Set<String> found = new LinkedHashSet<>();
    for (Path folder : folders()) {
      for (String name : names()) {
        if (Files.exists(folder.resolve(name))) {
          found.add(folder.resolve(name).toString());
        }
      }
    }
    found.addAll(names());
    return found;
  }

  private List<Path> folders() {
    List<Path> folders = new ArrayList<>();
    for (Path program : programs) {
      if (HYDRA.contains(nameOf(program)) || OTHER_LAUNCHERS.contains(nameOf(program))) {
        addLibraries(folders, program);
      }
    }
    split(environment.getOrDefault("PATH", "")).stream()
        .map(folder -> folder.resolve("mpirun"))
        .filter(Files::isExecutable)
        .findFirst()
        .ifPresent(program -> addLibraries(folders, program));
    folders.addAll(split(libraryPath));
    return folders;
  }

  /** Adds the library folders of the installation that a program belongs to. */
  private static void addLibraries(List<Path> folders, Path program) {
    Path real;
    try {
      real = program.toRealPath();
    } catch (IOException e) {
      return; // it has been deleted, or must not be read
    }
    Path prefix = real.getParent().getParent(); // above bin
    if (prefix != null) {
      folders.add(prefix.resolve("lib"));
      folders.add(prefix.resolve("lib64"));
      folders.add(prefix.resolve("lib").resolve(triplet()));
    }
  }

  /** The name of Debian's and Ubuntu's library folders. */
  private static String triplet() {
    String arch = System.getProperty("os.arch", "");
    return (arch.equals("amd64") ? "x86_64" : arch) + "-linux-gnu";
  }

  private static List<Path> split(String path) {
    List<Path> folders = new ArrayList<>();
    for (String folder : path.split(File.pathSeparator)) {
      try {
        if (!folder.isEmpty()) {
          folders.add(Path.of(folder));
        }
      } catch (InvalidPathException e) {
        // no folder
      }
    }
    return folders;
  }
}

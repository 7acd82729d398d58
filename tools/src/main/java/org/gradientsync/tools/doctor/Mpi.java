package org.gradientsync.tools.doctor;

import java.io.File;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.gradientsync.mpi.MpiTrial;
import org.gradientsync.spi.Availability;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.SearchPath;

/** Checks which Open MPI is installed, and whether its Java bindings work in a separate process. */
final class Mpi {
  static final String MPI = "Open MPI";
  static final String BINDINGS = "Java bindings";
  static final String CALLS = "ranks call";
  static final String MPIRUN = "mpirun";
  static final String LIBRARY = "library version";
  static final String CUDA_AWARE = "CUDA-aware";
  static final String JAR = "mpi.jar";
  static final String C_LIBRARY = "the C library";
  static final String USABLE = "usable";
  static final String NOT_FOUND = "not found";

  private static final String FILE = System.mapLibraryName("mpi_java");

  private final Map<String, String> environment;
  private String libraries = "";

  Mpi(Map<String, String> environment) {
    this.environment = environment;
  }

  /** Checks everything except device memory. */
  void check(Facts facts) {
    Duration limit = Duration.ofSeconds(5);
    ChildProcess.Result mpirun = ChildProcess.command("mpirun", "--version").run(limit);
    facts.add(
        MPI,
        MPIRUN,
        mpirun.isGood()
            ? mpirun.output().lines().findFirst().orElse("") + ", " + onPath()
            : NOT_FOUND);
    String prefix = ompiInfo("prefix", limit);
    facts.add(MPI, "prefix", prefix.isEmpty() ? "unknown: ompi_info tells nothing" : prefix);
    URL jar = Mpi.class.getClassLoader().getResource("mpi/MPI.class");
    facts.add(MPI, JAR, jar == null ? NOT_FOUND : fileOf(jar));
    facts.add(MPI, CALLS, MpiTrial.takesJavaBindings() ? BINDINGS : C_LIBRARY);
    String path = System.getProperty("java.library.path", "");
    String found = folderOf(path);
    if (found.isEmpty()) { // gradient-sync run does the same
      libraries = ompiInfo("libdir", limit);
      found = folderOf(libraries);
      libraries = found;
    }
    facts.add(MPI, FILE, found.isEmpty() ? NOT_FOUND : Path.of(found, FILE));
    Availability files =
        MpiTrial.files(libraries.isEmpty() ? path : libraries + File.pathSeparator + path);
    if (!files.usable()) {
      facts.add(MPI, BINDINGS, files.reason());
      return;
    }
    ChildProcess.Result trial = trial().run(Duration.ofSeconds(15));
    if (!trial.after("version=").isEmpty()) {
      facts.add(MPI, LIBRARY, trial.after("version="));
      facts.add(MPI, "takes device memory, as it says", trial.after("says="));
    }
    facts.add(MPI, BINDINGS, trial.isGood() ? USABLE : trial.failure());
  }

  /** Sends device memory to itself. Call it after {@link #check}. */
  void checkCudaAware(Facts facts) {
    ChildProcess.Result trial = trial(MpiTrial.CUDA_AWARE).run(Duration.ofSeconds(12));
    facts.add(MPI, CUDA_AWARE, trial.isGood() ? "yes, tried" : "no, tried: " + trial.failure());
  }

  /** Returns whether ranks call the C library, so that the bindings need not be usable. */
  static boolean callsLibrary(Facts facts) {
    return facts.get(MPI, CALLS).equals(C_LIBRARY);
  }

  /** Returns the folder of the bindings' library, or empty if the JVM finds it by itself. */
  String libraries() {
    return libraries;
  }

  private ChildProcess trial(String... args) {
    ChildProcess child = ChildProcess.java(MpiTrial.class.getName(), args).libraries(libraries);
    MpiTrial.forgetJob(child.environment());
    child.environment().putIfAbsent(Host.UCX_SIGNALS, "");
    return child;
  }

  private static String ompiInfo(String path, Duration limit) {
    return ChildProcess.command("ompi_info", "--path", path, "--parsable")
        .run(limit)
        .after("path:" + path + ":");
  }

  private static String folderOf(String path) {
    return SearchPath.find(path, FILE).findFirst().map(file -> file.getParent() + "").orElse("");
  }

  private String onPath() {
    return SearchPath.find(environment.getOrDefault("PATH", ""), "mpirun")
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst()
        .orElse("");
  }

  private static String fileOf(URL url) {
    return url.toString().replaceFirst("^jar:", "").replaceFirst("^file:", "").split("!")[0];
  }
}

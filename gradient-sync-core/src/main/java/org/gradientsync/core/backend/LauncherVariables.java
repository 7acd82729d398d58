package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.UnavailableException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The environment variables in which launchers pass the number of processes they have started. A
 * process that does not find the others would silently train alone; {@link #requireSize} throws
 * instead.
 *
 * <p>Immutable, so any thread may use it.
 */
public final class LauncherVariables {
  private static final Logger log = LoggerFactory.getLogger(LauncherVariables.class);
  private static final String OMPI_SIZE = "OMPI_COMM_WORLD_SIZE";
  private static final String RUN_SIZE = "GRADIENTSYNC_RUN_RANKS";

  /**
   * Launchers that overwrite inherited variables for the processes they start, the innermost first.
   */
  private static final List<Launched> INNERMOST =
      List.of(
          new Launched("torchrun", "WORLD_SIZE", "RANK", "TORCHELASTIC_RUN_ID"),
          new Launched("mpirun", OMPI_SIZE, "OMPI_COMM_WORLD_RANK", OMPI_SIZE),
          new Launched("an mpirun that is not Open MPI's", "PMI_SIZE", "PMI_RANK", "PMI_SIZE"));

  /** Launchers of which several may have set their variables. */
  private static final List<Launched> OTHERS =
      List.of(
          new Launched("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_PROCID"),
          new Launched("torchrun, or another launcher,", "WORLD_SIZE", "RANK", "RANK"),
          new Launched(
              "an mpirun that is not Open MPI's",
              "MPI_LOCALNRANKS", // those of this node only
              "MPI_LOCALRANKID",
              "MPI_LOCALNRANKS"),
          new Launched("gradient-sync run", RUN_SIZE, "GRADIENTSYNC_RUN_RANK", RUN_SIZE));

  private final Map<String, String> environment;

  /**
   * A launcher and its variables.
   *
   * @param size the variable with the number of processes
   * @param rank the variable with the number of this process
   * @param marker the variable that must exist, too, for {@code size} to count
   */
  private record Launched(String name, String size, String rank, String marker) {}

  /**
   * A job of several processes, as a launcher's variables describe it.
   *
   * @param launcher the launcher's name, for texts
   * @param variable the environment variable with the number of processes
   * @param size the number of processes, more than one
   * @param rank the number of this process, as the launcher formats it
   */
  public record Job(String launcher, String variable, int size, String rank) {}

  /**
   * Creates the variables of any process.
   *
   * @param environment names and values
   */
  public LauncherVariables(Map<String, String> environment) {
    this.environment = Map.copyOf(environment);
  }

  /**
   * {@return the variables of this process, from {@link #environment()}}
   *
   * @throws UnavailableException as for {@link #environment()}
   */
  public static LauncherVariables ofProcess() {
    return new LauncherVariables(environment());
  }

  /**
   * {@return the environment of this process} Before version 18, Java decodes it in the default
   * charset, which garbles all names with {@code -Dfile.encoding=UTF-16}. This method then reads it
   * from {@code /proc}.
   *
   * @throws UnavailableException if it cannot be read
   */
  public static Map<String, String> environment() {
    return environment(System.getenv(), Charset.defaultCharset(), Path.of("/proc/self/environ"));
  }

  static Map<String, String> environment(Map<String, String> read, Charset charset, Path raw) {
    byte[] ascii = OMPI_SIZE.getBytes(StandardCharsets.US_ASCII);
    if (new String(ascii, charset).equals(OMPI_SIZE)) {
      return read;
    }
    Map<String, String> environment = new HashMap<>();
    try {
      for (String line : new String(Files.readAllBytes(raw), StandardCharsets.UTF_8).split("\0")) {
        int equals = line.indexOf('=');
        if (equals > 0) {
          environment.put(line.substring(0, equals), line.substring(equals + 1));
        }
      }
    } catch (IOException e) {
      throw new UnavailableException(
          ("the environment variables cannot be read, so nothing is known of other ranks:"
                  + " file.encoding=%s, file=%s; start java with -Dfile.encoding=UTF-8")
              .formatted(charset, raw),
          e);
    }
    return environment;
  }

  /**
   * {@return whether Open MPI's mpirun, or another launcher with PMIx, started the process, so that
   * Open MPI can join the other ranks}
   */
  public boolean areForOpenMpi() {
    return environment.containsKey(OMPI_SIZE) || environment.containsKey("PMIX_RANK");
  }

  /**
   * {@return whether a launcher of MPICH's kind started the process as one of several, so that such
   * an MPI can join the other ranks}
   */
  public boolean areForMpich() {
    return !areForOpenMpi()
        && environment.containsKey("PMI_RANK")
        && number(environment.get("PMI_SIZE")) > 1;
  }

  /**
   * {@return the job of several processes to which this process belongs, or empty if it is alone}
   * If launchers are nested, the innermost counts.
   */
  public Optional<Job> job() {
    return jobs().stream().findFirst();
  }

  private List<Job> jobs() {
    for (Launched launched : INNERMOST) {
      if (environment.containsKey(launched.marker)) {
        return jobs(List.of(launched));
      }
    }
    return jobs(OTHERS);
  }

  private List<Job> jobs(List<Launched> launchers) {
    List<Job> jobs = new ArrayList<>();
    for (Launched launched : launchers) {
      int size = number(environment.get(launched.size));
      if (size > 1 && environment.containsKey(launched.marker)) {
        String rank = environment.getOrDefault(launched.rank, "(unknown)");
        jobs.add(new Job(launched.name, launched.size, size, rank));
      }
    }
    return jobs;
  }

  /** Returns 0 if the text is not a number. */
  private static int number(String text) {
    try {
      return text == null ? 0 : Integer.parseInt(text.strip());
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  /**
   * Throws if a job does not have as many ranks as its launcher started.
   *
   * @param found the number of ranks that were found, 1 or more
   * @throws UnavailableException if launchers started several processes, and none of them this
   *     number
   */
  public void requireSize(int found) {
    List<Job> jobs = jobs();
    if (jobs.isEmpty() && found == 1) {
      warnOfHalf();
    }
    if (jobs.isEmpty() || jobs.stream().anyMatch(job -> agrees(job, found))) {
      return;
    }
    Job job = jobs.get(0);
    throw new UnavailableException(
        ("%s started %s processes, but this one finds %s: %s=%s, expected=%s, found=%s, rank=%s;"
                + " %s; to train alone on purpose, set gradientsync.dev.launcher=none")
            .formatted(
                job.launcher,
                job.size,
                found == 1 ? "itself alone" : "another number of ranks",
                job.variable,
                job.size,
                job.size,
                found,
                job.rank,
                remedy(job)));
  }

  /** Warns of variables that one rank alone would not have; other programs use the words, too. */
  private void warnOfHalf() {
    for (String name : List.of("WORLD_SIZE", "RANK")) {
      if (number(environment.get(name)) > (name.equals("RANK") ? 0 : 1)) {
        log.warn(
            "this process is the only rank, but {}={} is set; a job over TCP needs RANK,"
                + " WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
            name,
            environment.get(name));
        return;
      }
    }
    String master = environment.get("MASTER_ADDR");
    boolean ofRank = environment.containsKey("RANK") || environment.containsKey("WORLD_SIZE");
    if (master != null && environment.containsKey("MASTER_PORT") && !ofRank) {
      log.warn(
          "this process is the only rank, but MASTER_ADDR={} and MASTER_PORT are set; a job over"
              + " TCP needs RANK and WORLD_SIZE, too",
          master);
    }
  }

  private static boolean agrees(Job job, int found) {
    boolean ofNode = job.variable.equals("MPI_LOCALNRANKS");
    return job.size == found || ofNode && found > job.size;
  }

  private static String remedy(Job job) {
    String mpirun = "Open MPI's mpirun -np " + job.size;
    return switch (job.variable) {
      case OMPI_SIZE ->
          "let each rank have all the variables that "
              + mpirun
              + " sets, OMPI_ and PMIX_: a container or a script may drop some";
      case "SLURM_STEP_NUM_TASKS" ->
          "start the job with srun --mpi=pmix, or with " + mpirun + " in the allocation";
      case RUN_SIZE ->
          "its launcher does not tell the processes of one another: choose an mpirun of Open MPI or"
              + " MPICH by --launcher, or --threads";
      case "WORLD_SIZE" ->
          "start the job with gradient-sync-tcp on the class path and with MASTER_ADDR and MASTER_PORT"
              + " set, or with "
              + mpirun
              + " instead";
      default -> "start the job with " + mpirun + " instead";
    };
  }
}

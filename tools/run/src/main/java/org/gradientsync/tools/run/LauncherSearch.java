package org.gradientsync.tools.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.Scratch;
import org.gradientsync.tools.program.SearchPath;
import org.gradientsync.tools.program.ToolException;

/** Finds the program that is to start the ranks. */
final class LauncherSearch {
  /** Usual names, those first whose choice is the user's by the order of the PATH. */
  private static final List<String> MPI = List.of("mpirun", "mpiexec");

  /** Names that only one kind has, for where there is none of the usual ones. */
  private static final List<String> OTHERS =
      List.of("mpirun.openmpi", "mpiexec.hydra", "mpiexec.mpich", "srun");

  private static final String KNOWN =
      "; name the mpirun of Open MPI, the mpiexec of MPICH or Slurm's srun by --launcher";

  private final String path;

  /**
   * @param path folders in the format of the variable PATH
   */
  LauncherSearch(String path) {
    this.path = path;
  }

  /**
   * Finds the program.
   *
   * @param choice a name or a path, or null for what the PATH has
   */
  MpiInstallation find(String choice) {
    return choice == null ? search() : chosen(choice);
  }

  /** Whether the path has no program that may be a launcher. */
  boolean isEmpty() {
    return Stream.concat(MPI.stream(), OTHERS.stream()).allMatch(n -> onPath(n).count() == 0);
  }

  /** Whether the path has ssh. */
  boolean hasSsh() {
    return onPath("ssh").findFirst().isPresent();
  }

  /** Throws where there is no ssh. */
  void requireSsh() {
    if (!hasSsh()) {
      throw ToolException.cannotRun(
          "there is no ssh, which starts the ranks of other hosts: PATH=%s; install an ssh client,"
              + " or give this command on each host, with --nnodes and --node-rank",
          path);
    }
  }

  private MpiInstallation chosen(String choice) {
    Path program =
        choice.contains("/")
            ? Path.of(choice).toAbsolutePath()
            : onPath(choice).findFirst().orElse(null);
    if (program == null || !Files.isExecutable(program) || Files.isDirectory(program)) {
      String srun = choice.equals("srun") ? "; this is no machine of a Slurm cluster" : "";
      throw ToolException.badUse(
          "there is no such launcher: --launcher %s%s%s; name one that is there, mpirun, mpiexec,"
              + " srun or a path, give tcp for none of them, or leave --launcher out",
          choice, choice.contains("/") ? "" : ", PATH=" + path, srun);
    }
    ChildProcess.Result answer = version(program);
    return MpiInstallation.of(program, answer.output())
        .orElseThrow(
            () ->
                isSrun(program)
                    ? ToolException.cannotRun(
                        "there is no Slurm here that srun could reach: %s; start the job on a"
                            + " machine of the cluster, or by --launcher mpirun",
                        says(program, answer))
                    : ToolException.cannotRun(
                        "this launcher is of no known MPI: %s%s", says(program, answer), KNOWN));
  }

  private MpiInstallation search() {
    List<MpiInstallation> found = new ArrayList<>();
    Map<Path, String> unknown = new LinkedHashMap<>();
    for (String name : MPI) {
      firstKnown(name, unknown).ifPresent(found::add);
    }
    for (String name : OTHERS) {
      if (found.isEmpty()) {
        firstKnown(name, unknown).ifPresent(found::add);
      }
    }
    if (found.isEmpty() && unknown.isEmpty()) {
      throw ToolException.cannotRun(
          "there is no mpirun, mpiexec or srun: PATH=%s; install Open MPI (Debian: apt-get"
              + " install openmpi-bin), name its mpirun by --launcher, or run the ranks as"
              + " threads by --threads",
          path);
    }
    if (found.isEmpty()) {
      throw ToolException.cannotRun(
          "no launcher on the PATH is of a known MPI: %s%s",
          String.join(", ", unknown.values()), KNOWN);
    }
    MpiInstallation first = found.get(0);
    for (MpiInstallation other : found) {
      if (other.kind() != first.kind()) {
        throw ToolException.cannotRun(
            "the PATH has two MPIs of different kinds: %s and %s; choose one by --launcher %s or"
                + " --launcher %s",
            first, other, first.program(), other.program());
      }
    }
    return first;
  }

  /**
   * Asks the programs of a name in the order of the PATH.
   *
   * @param unknown gets those that are of no known MPI, by what they are, with what they say
   */
  private Optional<MpiInstallation> firstKnown(String name, Map<Path, String> unknown) {
    for (Path program : onPath(name).toList()) {
      Path real = MpiInstallation.real(program);
      if (unknown.containsKey(real)) {
        continue; // the PATH often has a folder under two names
      }
      ChildProcess.Result answer = version(program);
      Optional<MpiInstallation> found = MpiInstallation.of(program, answer.output());
      if (found.isPresent()) {
        return found;
      }
      unknown.put(real, says(program, answer));
    }
    return Optional.empty();
  }

  private static ChildProcess.Result version(Path program) {
    ChildProcess.Result answer = ChildProcess.ask(program.toString(), "--version");
    if (answer.failure().startsWith(Scratch.NO_FOLDER)) {
      throw ToolException.cannotRun("%s, %s", answer.failure(), Scratch.advice());
    }
    return answer;
  }

  /** Quotes the line that tells most: srun's last one says why it cannot reach Slurm. */
  private static String says(Path program, ChildProcess.Result answer) {
    List<String> lines = answer.output().lines().filter(each -> !each.isBlank()).toList();
    String line =
        lines.isEmpty()
            ? answer.failure()
            : lines.get(isSrun(program) ? lines.size() - 1 : 0).strip();
    return program + " --version says '" + line + "'";
  }

  private static boolean isSrun(Path program) {
    return String.valueOf(program.getFileName()).equals("srun");
  }

  private Stream<Path> onPath(String name) {
    return SearchPath.find(path, name).filter(Files::isExecutable);
  }
}

package org.gradientsync.tools.run;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A program that starts ranks, and what it belongs to.
 *
 * @param program its path, as it was found
 * @param version for example {@code 4.1.4}
 */
record MpiInstallation(Path program, LauncherKind kind, String version) {
  private static final Pattern OPEN_MPI =
      Pattern.compile("(?:mpirun|mpiexec|prterun|orterun) \\((?:Open MPI|OpenRTE)\\) (\\S+)");
  private static final Pattern PRRTE = Pattern.compile("\\((?:PRRTE|prrte)[^)]*\\) (\\S+)");
  private static final Pattern HYDRA =
      Pattern.compile("HYDRA build details:\\s+Version:\\s+(\\S+)");
  private static final Pattern INTEL = Pattern.compile("Intel\\(R\\) MPI Library.*Version (\\S+)");
  private static final Pattern SLURM = Pattern.compile("^slurm\\S* (\\S+)");

  private static final List<Path> ETC =
      List.of(Path.of("/etc/openmpi"), Path.of("/etc/prrte"), Path.of("/etc/prte"));
  private static final List<String> DEFAULT_HOSTS =
      List.of("openmpi-default-hostfile", "prte-default-hostfile");

  /**
   * {@return the installation of a program that prints this with {@code --version}, or empty if it
   * is of no known kind}
   */
  static Optional<MpiInstallation> of(Path program, String output) {
    return first(OPEN_MPI, program, LauncherKind.OPEN_MPI, output)
        .or(() -> first(HYDRA, program, LauncherKind.HYDRA, output))
        .or(() -> first(INTEL, program, LauncherKind.HYDRA, output))
        .or(() -> first(SLURM, program, LauncherKind.SLURM, output))
        .or(() -> first(PRRTE, program, LauncherKind.OPEN_MPI, output));
  }

  private static Optional<MpiInstallation> first(
      Pattern pattern, Path program, LauncherKind kind, String output) {
    Matcher matcher = pattern.matcher(output);
    return matcher.find()
        ? Optional.of(new MpiInstallation(program, kind, matcher.group(1)))
        : Optional.empty();
  }

  /** Returns the first number of the version, or 0. */
  int major() {
    String digits = version.split("\\D", 2)[0];
    return digits.isEmpty() || digits.length() > 5 ? 0 : Integer.parseInt(digits);
  }

  /**
   * Returns the program's path, and those of the symbolic links behind it: the folders of all may
   * have what belongs to it.
   */
  List<Path> places() {
    Set<Path> places = new LinkedHashSet<>();
    Path place = program;
    try {
      while (places.add(place) && Files.isSymbolicLink(place)) {
        place = place.resolveSibling(Files.readSymbolicLink(place)).normalize();
      }
    } catch (IOException e) {
      // the last one has been found
    }
    places.add(real(program)); // where folders are links
    return List.copyOf(places);
  }

  /** Returns a path without symbolic links. */
  static Path real(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path;
    }
  }

  /**
   * Returns whether this Open MPI has a file of hosts that it takes if nobody names others. That of
   * Open MPI 5 is its PRRTE's.
   */
  boolean hasDefaultHosts() {
    return Stream.concat(
            places().stream().map(place -> place.resolveSibling("../etc").normalize()),
            ETC.stream())
        .flatMap(folder -> DEFAULT_HOSTS.stream().map(folder::resolve))
        .anyMatch(MpiInstallation::namesHosts);
  }

  private static boolean namesHosts(Path file) {
    try (Stream<String> lines = Files.lines(file, StandardCharsets.ISO_8859_1)) {
      return lines.map(String::strip).anyMatch(line -> !line.isEmpty() && !line.startsWith("#"));
    } catch (IOException | UncheckedIOException e) {
      return false; // most have none
    }
  }

  /** Returns for example {@code /usr/bin/mpirun (Open MPI 4.1.4)}. */
  @Override
  public String toString() {
    return program + " (" + kind + " " + version + ")";
  }
}

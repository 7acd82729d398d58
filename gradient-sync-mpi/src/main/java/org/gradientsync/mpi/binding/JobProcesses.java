package org.gradientsync.mpi.binding;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The processes of this job that can be seen from here, found by what the launcher has put into
 * their environment. This names ranks that have not come, before MPI can. Works on Linux, within a
 * node, and finds nothing elsewhere.
 */
final class JobProcesses {
  private static final Path PROC = Path.of("/proc");
  private static final int COMMAND = 15; // how much of a thread's name Linux keeps
  private static final String STARTS = MpiStart.THREAD.substring(0, COMMAND);

  /**
   * The process of a rank.
   *
   * @param place where it is
   * @param hasCome whether it has begun to start MPI
   */
  record Found(RankPlace place, boolean hasCome) {
    /** Why nothing has come of it. */
    String late(int rank) {
      String trouble = place.trouble();
      return "rank " + rank + " (" + place + ") " + (trouble.isEmpty() ? "has not come" : trouble);
    }
  }

  private JobProcesses() {}

  /** By rank, without those that cannot be seen. */
  static Map<Integer, Found> find(Map<String, String> environment) {
    Map<Integer, Found> found = new HashMap<>();
    String job = environment.get("PMIX_NAMESPACE");
    if (job == null) {
      return found;
    }
    try (DirectoryStream<Path> processes = Files.newDirectoryStream(PROC, "[0-9]*")) {
      for (Path process : processes) {
        int rank = rankOf(process, job);
        Found other = found.get(rank);
        if (rank >= 0 && (other == null || !other.hasCome())) { // rather than a shell around it
          RankPlace place = RankPlace.of(host(), Long.parseLong(process.getFileName().toString()));
          found.put(rank, new Found(place, startsMpi(process)));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      found.clear(); // then nobody is named
    }
    return found;
  }

  private static int rankOf(Path process, String job) {
    try {
      List<String> variables =
          List.of(
              Files.readString(process.resolve("environ"), StandardCharsets.ISO_8859_1)
                  .split("\0"));
      return variables.contains("PMIX_NAMESPACE=" + job)
          ? variables.stream()
              .filter(v -> v.matches("PMIX_RANK=\\d{1,9}"))
              .mapToInt(v -> Integer.parseInt(v.substring(v.indexOf('=') + 1)))
              .findFirst()
              .orElse(-1)
          : -1;
    } catch (IOException e) {
      return -1; // another user's, or it has ended
    }
  }

  private static boolean startsMpi(Path process) {
    try (DirectoryStream<Path> threads = Files.newDirectoryStream(process.resolve("task"))) {
      for (Path thread : threads) {
        if (Files.readString(thread.resolve("comm"), StandardCharsets.ISO_8859_1)
            .strip()
            .equals(STARTS)) {
          return true;
        }
      }
      return false;
    } catch (IOException | DirectoryIteratorException e) {
      return false;
    }
  }

  /** This host's name, as MPI gives it. */
  static String host() {
    try {
      return Files.readString(PROC.resolve("sys/kernel/hostname")).strip();
    } catch (IOException e) {
      return "";
    }
  }
}

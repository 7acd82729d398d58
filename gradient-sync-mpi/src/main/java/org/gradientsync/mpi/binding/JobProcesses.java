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
import org.gradientsync.core.backend.RankPlace;

/**
 * Finds this job's processes on this node by the launcher's variables in their environment. This
 * names missing ranks before MPI can. Works only on Linux and finds nothing elsewhere.
 */
final class JobProcesses {
  private static final Path PROC = Path.of("/proc");
  private static final int COMMAND = 15; // Linux truncates thread names to this length
  private static final String STARTS = MpiStart.THREAD.substring(0, COMMAND);

  /**
   * The process of a rank.
   *
   * @param place its host and process id
   * @param hasCome whether it has begun to start MPI
   */
  record Found(RankPlace place, boolean hasCome) {
    /** Describes why the rank is late. */
    String late(int rank) {
      String trouble = place.trouble();
      return "rank " + rank + " (" + place + ") " + (trouble.isEmpty() ? "has not come" : trouble);
    }
  }

  private JobProcesses() {}

  /** Returns the visible processes by rank. */
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
        if (rank >= 0
            && (other == null || !other.hasCome())) { // prefers the JVM to a shell around it
          RankPlace place = RankPlace.of(host(), Long.parseLong(process.getFileName().toString()));
          found.put(rank, new Found(place, startsMpi(process)));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      found.clear(); // names no ranks
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
      return -1; // another user's process, or it has ended
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

  /** This host's name, the same as MPI returns. */
  static String host() {
    try {
      return Files.readString(PROC.resolve("sys/kernel/hostname")).strip();
    } catch (IOException e) {
      return "";
    }
  }
}

package org.gradientsync.collective;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder in which the ranks of one group say what they are doing, after one of them has waited
 * too long. That it is there is the question: each rank's {@link Watch} looks for it and answers,
 * also where the rank's own thread is stuck. So it works without MPI, whose state nobody knows by
 * then, among all ranks that see the same folder.
 *
 * <p>Its name holds a random number that only the ranks know, and it is readable by its user alone.
 */
final class Reports {
  private static final Logger log = LoggerFactory.getLogger(Reports.class);
  private static final String PREFIX = "gradient-sync-report-";
  private static final String OWN = "rank-";
  private static final String SUMMARY = "summary.txt";
  private static final long PATIENCE_NANOS = 2_000_000_000L;

  private final Path folder;
  private final Path fallback;
  private final int rank;
  private final int size;
  private boolean written;

  /**
   * Nothing is made before it is asked for.
   *
   * @param base where the folder will be
   * @param id the group's, random and the same on all ranks
   */
  Reports(Path base, long id, int rank, int size) {
    String name = PREFIX + Long.toHexString(id);
    folder = base.toAbsolutePath().normalize().resolve(name);
    fallback = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().resolve(name);
    this.rank = rank;
    this.size = size;
  }

  /**
   * Asks all ranks for reports, writes this one's, and waits for the others' as long as is worth
   * while. The first rank to do so logs what they say.
   *
   * @param text what is wrong
   * @param own this rank's report
   * @return where the reports are, for the end of a message, or an empty text if nowhere
   */
  String collect(String text, Supplier<List<String>> own) {
    Path where = ask();
    if (where == null) {
      return "";
    }
    // By another thread: the device that is asked for its state may be stuck, too.
    Thread writer = new Thread(() -> answer(own), "gradient-sync-report");
    writer.setDaemon(true);
    writer.start();
    awaitAll();
    String summary = summary();
    if (!summary.isEmpty()) {
      log.error(
          "{}; what each of {} ranks was doing:{}\n  reports: {}", text, size, summary, where);
    }
    return "; reports=" + where;
  }

  /** Whether a rank, this one or another, has asked for reports. */
  boolean isAsked() {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        || Files.isDirectory(fallback, LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * Asks all ranks.
   *
   * @return the folder, or null if none can be made
   */
  private Path ask() {
    if (isAsked()) {
      return where();
    }
    var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    for (Path candidate : List.of(folder, fallback)) {
      try {
        Files.createDirectories(candidate.getParent());
        Files.createDirectory(candidate, mode);
        return candidate;
      } catch (IOException | UnsupportedOperationException | SecurityException e) {
        if (Files.isDirectory(candidate, LinkOption.NOFOLLOW_LINKS)) {
          return candidate; // another rank was faster
        }
        log.debug("no reports can be written there: folder={}", candidate, e);
      }
    }
    return null;
  }

  private Path where() {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS) ? folder : fallback;
  }

  /**
   * Writes this rank's report, once.
   *
   * @param report the first line sums it up; made only if it is needed
   */
  synchronized void answer(Supplier<List<String>> report) {
    if (written) {
      return;
    }
    written = true;
    try {
      write(file(rank), report.get());
    } catch (IOException | RuntimeException e) {
      log.warn("rank {}: its report cannot be written: folder={}", rank, where(), e);
    }
  }

  private static void write(Path file, List<String> lines) throws IOException {
    Path unfinished = file.resolveSibling(file.getFileName() + ".part");
    Files.write(unfinished, lines, StandardCharsets.UTF_8);
    Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE); // so that no half is read
  }

  private Path file(int ofRank) {
    return where().resolve(OWN + ofRank + ".txt");
  }

  /** Waits for the others' reports, as long as is worth while. */
  private void awaitAll() {
    long start = System.nanoTime();
    while (System.nanoTime() - start < PATIENCE_NANOS) {
      int there = 0;
      for (int other = 0; other < size; other++) {
        there += Files.exists(file(other)) ? 1 : 0;
      }
      if (there == size) {
        return;
      }
      LockSupport.parkNanos(10_000_000);
    }
  }

  /**
   * What all ranks said in their first lines, for the one rank that tells it: the first that asks.
   *
   * @return the summary, which has been left in the folder, too; or an empty text
   */
  private String summary() {
    StringBuilder text = new StringBuilder();
    for (int other = 0; other < size; other++) {
      String line = firstLine(other);
      text.append("\n  rank ").append(other).append(' ');
      text.append(
          line == null
              ? "has written no report: it is stopped, has ended, or sees another folder"
              : line);
    }
    try {
      List<String> lines = text.toString().strip().lines().map(String::strip).toList();
      Files.write(
          where().resolve(SUMMARY), lines, StandardCharsets.UTF_8, StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      return ""; // another rank was faster
    } catch (IOException e) {
      log.debug("the summary cannot be written: folder={}", where(), e);
    }
    return text.toString();
  }

  private String firstLine(int ofRank) {
    try (var lines = Files.lines(file(ofRank), StandardCharsets.UTF_8)) {
      return lines.findFirst().orElse(null);
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }
}

package org.gradientsync.internal.diagnosis;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.function.Supplier;
import org.gradientsync.internal.ranks.RankMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder to which the ranks of one group write their reports. Its existence is the request for
 * reports; a {@link Bell} wakes the ranks that must look for it.
 *
 * <p>Its name contains a random number that only the ranks know, and only its user can read it.
 */
public final class ReportFolder {
  private static final Logger log = LoggerFactory.getLogger(ReportFolder.class);
  private static final String PREFIX = "gradient-sync-report-";
  private static final String OWN = "rank-";
  private static final String NOT_WRITTEN = "-not-written ";
  private static final String SUMMARY = "summary.txt";
  private static final String SUMMARIZER = "teller.txt";

  private static final int LONGEST_NAME = 200;

  private final Path folder;
  private final Path fallback;
  private final int rank;
  private boolean written;

  /**
   * Creates nothing before reports are requested.
   *
   * @param base the parent of the folder
   * @param id the group's, random and the same on all ranks
   */
  public ReportFolder(Path base, long id, int rank) {
    String name = PREFIX + Long.toHexString(id);
    folder = base.toAbsolutePath().normalize().resolve(name);
    fallback = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().resolve(name);
    this.rank = rank;
  }

  /** Whether any rank has requested reports. */
  boolean isAsked() {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        || Files.isDirectory(fallback, LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * Requests reports from all ranks that see the folder.
   *
   * @return the folder, or null if none can be created
   */
  Path ask() {
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
   * Writes this rank's report, once. A separate thread does this, because code that contributes to
   * the report, such as a device's state, may be stuck.
   *
   * @param report its first line is the summary; called only if needed
   */
  synchronized void answer(Supplier<List<String>> report) {
    if (!written) {
      written = true;
      Thread writer = new Thread(() -> writeOwn(report), "gradient-sync-report");
      writer.setDaemon(true);
      writer.start();
    }
  }

  private void writeOwn(Supplier<List<String>> report) {
    try {
      write(file(rank), report.get());
    } catch (IOException | RuntimeException e) {
      log.warn("rank {}: its report cannot be written: folder={}", rank, where(), e);
      leaveReason(e);
    }
  }

  /** Leaves the reason in the name of an empty file, which even a full file system can hold. */
  private void leaveReason(Exception cause) {
    String reason = cause instanceof FileSystemException f ? f.getReason() : cause.getMessage();
    String text = reason == null ? cause.getClass().getSimpleName() : reason;
    String name = OWN + rank + NOT_WRITTEN + text.replaceAll("[^A-Za-z0-9 ]", " ");
    try {
      Files.createFile(where().resolve(name.substring(0, Math.min(LONGEST_NAME, name.length()))));
    } catch (IOException | RuntimeException e) {
      log.debug("rank {}: nor can the reason: folder={}", rank, where(), e);
    }
  }

  /** Why a rank has not written its report, or null if it left no reason. */
  private String reasonOf(int ofRank) {
    String start = OWN + ofRank + NOT_WRITTEN;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(where(), start + "*")) {
      for (Path file : files) {
        return file.getFileName().toString().substring(start.length());
      }
    } catch (IOException | RuntimeException e) {
      log.debug("rank {}: reports cannot be looked for: folder={}", rank, where(), e);
    }
    return null;
  }

  private static void write(Path file, List<String> lines) throws IOException {
    Path unfinished = file.resolveSibling(file.getFileName() + ".part");
    Files.write(unfinished, lines, StandardCharsets.UTF_8);
    Files.move(
        unfinished, file, StandardCopyOption.ATOMIC_MOVE); // readers never see a partial file
  }

  private Path file(int ofRank) {
    return where().resolve(OWN + ofRank + ".txt");
  }

  /** Whether a rank has left a report, or the reason why it could not write one. */
  boolean has(int ofRank) {
    return Files.exists(file(ofRank)) || reasonOf(ofRank) != null;
  }

  /**
   * The first line of a rank's report, or why it could not be written, or null if neither is there.
   */
  String firstLine(int ofRank) {
    try (var lines = Files.lines(file(ofRank), StandardCharsets.UTF_8)) {
      return lines.findFirst().orElse(null);
    } catch (IOException | RuntimeException e) {
      String reason = reasonOf(ofRank);
      return reason == null ? null : "could not write its report: " + reason;
    }
  }

  /**
   * Assigns the summary to a rank, unless one has it already.
   *
   * @param name the rank's {@link org.gradientsync.spi.RankGroup#name}
   * @return whether this call assigned it; also true if nothing can be written
   */
  boolean leaveSummaryTo(int summarizer, String name) {
    try {
      Files.writeString(
          where().resolve(SUMMARIZER),
          summarizer + ": the summary is left to " + name + System.lineSeparator(),
          StandardCharsets.UTF_8,
          StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      return false; // another rank was faster
    } catch (IOException e) {
      log.debug("the summary cannot be left to a rank: folder={}", where(), e);
    }
    return true;
  }

  /** The rank that has the summary, or {@link RankMap#NO_RANK} if unknown. */
  int summarizer() {
    try {
      return Integer.parseInt(Files.readString(where().resolve(SUMMARIZER)).split(":", 2)[0]);
    } catch (IOException | RuntimeException e) {
      return RankMap.NO_RANK;
    }
  }

  void writeSummary(List<String> lines) {
    try {
      write(where().resolve(SUMMARY), lines);
    } catch (IOException e) {
      log.debug("the summary cannot be written: folder={}", where(), e);
    }
  }
}

package org.gradientsync.core.diagnosis;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.gradientsync.core.host.OwnFiles;
import org.gradientsync.core.ranks.ShortText;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder to which the ranks of one group write their reports. Its existence is the request for
 * reports; a {@link Bell} wakes the ranks that must look for it.
 *
 * <p>Its name contains a random number that only the ranks know, and only its user can read it,
 * where the file system has such permissions. Where no folder can be created or written to, ranks
 * that are threads of this JVM still see each other's first lines ({@link LocalReports}).
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
  private final LocalReports here;
  private final int rank;
  private volatile String trouble = "";
  private boolean written;

  /**
   * Creates nothing before reports are requested.
   *
   * @param base the parent of the folder
   * @param here those of the group
   * @param id the group's, random and the same on all ranks
   */
  public ReportFolder(Path base, LocalReports here, long id, int rank) {
    String name = PREFIX + Long.toHexString(id);
    folder = base.toAbsolutePath().normalize().resolve(name);
    fallback = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().resolve(name);
    this.here = here;
    this.rank = rank;
  }

  /** Whether any rank has requested reports. */
  boolean isAsked() {
    return here.isAsked() || where() != null;
  }

  /**
   * Requests reports from all ranks that see the folder, or are threads of this JVM.
   *
   * @return the folder, or null if none can be created
   */
  Path ask() {
    here.ask();
    Path existing = where();
    if (existing != null) {
      return existing;
    }
    List<String> failures = new ArrayList<>();
    for (Path candidate : List.of(folder, fallback)) {
      try {
        Files.createDirectories(candidate.getParent());
        Files.createDirectory(candidate, OwnFiles.mode(candidate, "rwx------"));
        return candidate;
      } catch (IOException | UnsupportedOperationException | SecurityException e) {
        if (Files.isDirectory(candidate, LinkOption.NOFOLLOW_LINKS)) {
          return candidate; // another rank was faster
        }
        log.debug("no reports can be written there: folder={}", candidate, e);
        failures.add(e.toString());
      }
    }
    trouble = ShortText.oneLine(String.join(", ", failures));
    return null;
  }

  /** Why {@link #ask} has created no folder. */
  String trouble() {
    return trouble;
  }

  /** The folder that is there, or null. */
  private Path where() {
    for (Path candidate : List.of(folder, fallback)) {
      if (Files.isDirectory(candidate, LinkOption.NOFOLLOW_LINKS)) {
        return candidate;
      }
    }
    return null;
  }

  private Path resolve(String name) throws NoSuchFileException {
    Path where = where();
    if (where == null) {
      throw new NoSuchFileException(folder.toString());
    }
    return where.resolve(name);
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
    List<String> lines = List.of();
    try {
      lines = report.get();
      write(file(rank), lines);
    } catch (IOException | RuntimeException e) {
      if (where() == null) {
        log.debug("rank {}: there is no folder for its report", rank, e); // see trouble()
      } else {
        log.warn("rank {}: its report cannot be written: folder={}", rank, where(), e);
        leaveReason(e);
      }
    } finally {
      lines.stream().limit(1).forEach(line -> here.put(rank, line));
    }
  }

  /** Leaves the reason in the name of an empty file, which even a full file system can hold. */
  private void leaveReason(Exception cause) {
    String reason = cause instanceof FileSystemException f ? f.getReason() : cause.getMessage();
    String text = reason == null ? cause.getClass().getSimpleName() : reason;
    String name = OWN + rank + NOT_WRITTEN + text.replaceAll("[^A-Za-z0-9 ]", " ");
    try {
      Files.createFile(resolve(name.substring(0, Math.min(LONGEST_NAME, name.length()))));
    } catch (IOException | RuntimeException e) {
      log.debug("rank {}: nor can the reason: folder={}", rank, where(), e);
    }
  }

  /** Why a rank has not written its report, or null if it left no reason. */
  private String reasonOf(int ofRank) {
    String start = OWN + ofRank + NOT_WRITTEN;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(resolve(""), start + "*")) {
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

  private Path file(int ofRank) throws NoSuchFileException {
    return resolve(OWN + ofRank + ".txt");
  }

  /** Whether a rank has left a report, or the reason why it could not write one. */
  boolean has(int ofRank) {
    if (here.firstLine(ofRank) != null) {
      return true;
    }
    try {
      return Files.exists(file(ofRank)) || reasonOf(ofRank) != null;
    } catch (NoSuchFileException e) {
      return false; // there is no folder
    }
  }

  /**
   * The first line of a rank's report, or why it could not be written, or null if neither is there.
   */
  String firstLine(int ofRank) {
    String line = here.firstLine(ofRank);
    if (line != null) {
      return line;
    }
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
   * @return whether this call assigned it; if no file can be written, also true in another process
   */
  boolean leaveSummaryTo(int summarizer, String name) {
    try {
      Files.writeString(
          resolve(SUMMARIZER),
          summarizer + ": the summary is left to " + name + System.lineSeparator(),
          StandardCharsets.UTF_8,
          StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      return false; // another rank was faster
    } catch (IOException e) {
      log.debug("the summary cannot be left to a rank: folder={}", where(), e);
      return here.leaveSummaryTo(summarizer);
    }
    return true;
  }

  /** The rank that has the summary, or {@link org.gradientsync.core.ranks.RankMap#NO_RANK}. */
  int summarizer() {
    try {
      return Integer.parseInt(Files.readString(resolve(SUMMARIZER)).split(":", 2)[0]);
    } catch (IOException | RuntimeException e) {
      return here.summarizer();
    }
  }

  void writeSummary(List<String> lines) {
    try {
      write(resolve(SUMMARY), lines);
    } catch (IOException e) {
      log.debug("the summary cannot be written: folder={}", where(), e);
    }
  }
}

package org.gradientsync.core.diagnosis;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.backend.OwnFiles;
import org.gradientsync.core.backend.ShortText;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder to which the ranks of one group write their reports, in a folder of the whole job. Its
 * existence is the request for reports. So a process looks at one place, however many groups it
 * has, until the first request.
 *
 * <p>The names contain random numbers that only the ranks know, and only their user can read the
 * folders. If none can be created in the intended place, they are in that for temporary files.
 */
final class ReportFolder {
  private static final Logger log = LoggerFactory.getLogger(ReportFolder.class);
  private static final String SUMMARY = "summary.txt";

  private final List<Path> folders;
  volatile String trouble = ""; // why no folder can be created

  /** Creates nothing before reports are requested. The numbers are random. */
  ReportFolder(Path base, long job, long group) {
    String name = "gradient-sync-report-" + Long.toHexString(job);
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    folders =
        List.of(base, temporary).stream()
            .map(p -> p.toAbsolutePath().normalize().resolve(name).resolve(Long.toHexString(group)))
            .toList();
  }

  /** Where the whole job is asked for reports: the same for all groups with the same base. */
  List<Path> places() {
    return folders.stream().map(Path::getParent).toList();
  }

  static boolean isThere(Path folder) {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS);
  }

  /** The folder that is there, or null if no rank has requested reports. */
  Path where() {
    return folders.stream().filter(ReportFolder::isThere).findFirst().orElse(null);
  }

  /** Requests reports from all ranks that see the folder. Null if none can be created. */
  Path ask() {
    Path existing = where();
    if (existing != null) {
      return existing;
    }
    List<String> failures = new ArrayList<>();
    for (Path folder : folders) {
      try {
        Files.createDirectories(folder.getParent().getParent());
        create(folder.getParent());
        create(folder);
        return folder;
      } catch (IOException | UnsupportedOperationException | SecurityException e) {
        log.debug("no reports can be written there: folder={}", folder, e);
        failures.add(e.toString());
      }
    }
    trouble = ShortText.oneLine(String.join(", ", failures));
    return null;
  }

  private static void create(Path folder) throws IOException {
    try {
      Files.createDirectory(folder, OwnFiles.mode(folder, "rwx------"));
    } catch (FileAlreadyExistsException e) {
      if (!isThere(folder)) {
        throw e;
      } // otherwise another rank was faster
    }
  }

  private Path resolve(String name) {
    Path where = where();
    return (where == null ? folders.get(0) : where).resolve(name);
  }

  private Path file(int rank) {
    return resolve("rank-" + rank + ".txt");
  }

  /** Writes a rank's report; the others never see a part of it. */
  void write(int rank, List<String> lines) throws IOException {
    Path file = file(rank);
    Path unfinished = file.resolveSibling(file.getFileName() + ".part");
    Files.write(unfinished, lines, StandardCharsets.UTF_8);
    Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Writes a line for a rank that has no report. */
  void writeOnce(int rank, String line) throws IOException {
    try {
      Files.writeString(file(rank), line, StandardCharsets.UTF_8, StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      log.debug("it has one: rank={}", rank, e);
    }
  }

  /** The first line of a rank's report, or null if there is none. */
  String firstLine(int rank) {
    try (var lines = Files.lines(file(rank), StandardCharsets.UTF_8)) {
      return lines.findFirst().orElse(null);
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }

  /** Writes the summary. False if there is one; true also if none can be written. */
  boolean writeSummary(List<String> lines) {
    try {
      Files.write(resolve(SUMMARY), lines, StandardCharsets.UTF_8, StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      log.debug("the summary cannot be written: folder={}", where(), e);
    }
    return true;
  }
}

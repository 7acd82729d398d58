package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Names of files and folders that contain the id of the process that created them, so that a later
 * process can delete the files of a killed one. A name is a prefix, the namespace of process ids,
 * the process id, and a suffix.
 */
public final class ProcessFileNames {
  private static final Logger log = LoggerFactory.getLogger(ProcessFileNames.class);

  private static final Pattern REST = Pattern.compile("([1-9]\\d{0,9})-.+");

  private ProcessFileNames() {}

  /**
   * {@return the prefix of the names of all files of a process in this PID namespace}
   *
   * @param prefix says what the files are for
   * @param process its id
   */
  public static String of(String prefix, long process) {
    return of(prefix, Processes.NAMESPACE, process);
  }

  /**
   * {@return the prefix of the names of all files of a process}
   *
   * @param prefix says what the files are for
   * @param namespace the process's {@link Processes#NAMESPACE}
   * @param process its id
   */
  public static String of(String prefix, long namespace, long process) {
    return prefix + namespace + "-" + process + "-";
  }

  /**
   * Whether a file belongs to a process that has ended. False if it is of another namespace.
   *
   * @param prefix says what the files are for
   * @param name the name of a file
   * @return also false if the name is not one of {@link #of}
   */
  public static boolean isOfEndedProcess(String prefix, String name) {
    String start = prefix + Processes.NAMESPACE + "-";
    if (Processes.NAMESPACE == Processes.UNKNOWN || !name.startsWith(start)) {
      return false;
    }
    Matcher rest = REST.matcher(name.substring(start.length()));
    return rest.matches() && !Processes.isAlive(Long.parseLong(rest.group(1)), Processes.UNKNOWN);
  }

  /**
   * Deletes the files of ended processes of this user from a folder.
   *
   * @param folder where to look; errors are logged, not thrown
   * @param prefix says what the files are for
   * @param own the files of this user
   */
  public static void deleteStaleFiles(Path folder, String prefix, OwnFiles own) {
    try (DirectoryStream<Path> paths =
        Files.newDirectoryStream(
            folder, path -> isOfEndedProcess(prefix, path.getFileName().toString()))) {
      for (Path path : paths) {
        if (!own.owns(path)) {
          log.debug("left by another user, whose affair it is: file={}", path);
        } else {
          delete(path);
        }
      }
    } catch (IOException | RuntimeException e) {
      log.debug("what ended processes have left cannot be looked for: folder={}", folder, e);
    }
  }

  private static void delete(Path path) {
    try {
      Files.walkFileTree(path, new Deletion()); // follows no links
      log.info("deleted what a killed process left: file={}", path);
    } catch (NoSuchFileException e) {
      log.debug("another process was faster: file={}", path);
    } catch (IOException e) {
      log.debug("left by a killed process, and cannot be deleted: file={}", path, e);
    }
  }

  private static final class Deletion extends SimpleFileVisitor<Path> {
    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
      Files.delete(file);
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult postVisitDirectory(Path folder, IOException e) throws IOException {
      if (e != null) {
        throw e;
      }
      Files.delete(folder);
      return FileVisitResult.CONTINUE;
    }
  }
}

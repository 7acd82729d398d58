package org.gradientsync.core.backend;

import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file by which a launcher that starts lost ranks again learns how a rank is. It is empty until
 * the rank takes part, is gone then, and empty again once the rank has left. If all ranks give up,
 * because too few are left, it has a text. Other files beside it say that the rank has met the
 * others, before it takes part, and have the processes that it goes on without, although they may
 * still run.
 */
public final class WaitingFile {
  /** The variable with its name. */
  public static final String VARIABLE = "GRADIENTSYNC_WAITING";

  private static final Logger log = LoggerFactory.getLogger(WaitingFile.class);

  private WaitingFile() {}

  /** Says that this rank has met the others, and creates its sync. */
  public static void meet() {
    change(file -> Files.writeString(met(file), ""));
  }

  /** Says that this rank takes part: it has a sync, with which it can go on after a loss. */
  public static void takePart() {
    change(Files::deleteIfExists);
  }

  /** Says that this rank takes part no more: the others go on, and it ends. */
  public static void leave() {
    change(
        file -> {
          Files.deleteIfExists(met(file));
          return Files.createFile(file);
        });
  }

  /** Says that all ranks end, because too few are left: nobody needs to be started again. */
  public static void giveUp() {
    change(file -> Files.writeString(file, "too few ranks"));
  }

  /**
   * Says that the ranks go on without processes of this node, which may hang.
   *
   * @param processes their ids
   */
  public static void leaveBehind(List<Long> processes) {
    for (long process : processes) {
      change(file -> Files.writeString(left(file), process + "\n", CREATE, APPEND));
    }
  }

  /**
   * What there is once a rank has met the others.
   *
   * @param file the rank's
   * @return another file
   */
  public static Path met(Path file) {
    return file.resolveSibling(file.getFileName() + ".met");
  }

  /**
   * Where the processes are that a rank goes on without, one in each line.
   *
   * @param file the rank's
   * @return another file, which there may not be
   */
  public static Path left(Path file) {
    return file.resolveSibling(file.getFileName() + ".left");
  }

  private interface Change {
    Object apply(Path file) throws IOException;
  }

  private static void change(Change change) {
    String file = LauncherVariables.environment().get(VARIABLE);
    try {
      if (file != null) {
        change.apply(Path.of(file));
      }
    } catch (IOException e) {
      log.warn("the launcher does not learn how this rank is: {}", e.getMessage());
    }
  }
}

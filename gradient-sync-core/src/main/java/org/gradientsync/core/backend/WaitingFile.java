package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file by which a launcher that starts lost ranks again learns how a rank is. It is empty until
 * the rank takes part, and is gone then. If all ranks give up, because too few are left, it has a
 * text.
 */
public final class WaitingFile {
  /** The variable with its name. */
  public static final String VARIABLE = "GRADIENTSYNC_WAITING";

  private static final Logger log = LoggerFactory.getLogger(WaitingFile.class);

  private WaitingFile() {}

  /** Says that this rank takes part. */
  public static void takePart() {
    change(Files::deleteIfExists);
  }

  /** Says that all ranks end, because too few are left: nobody needs to be started again. */
  public static void giveUp() {
    change(file -> Files.writeString(file, "too few ranks"));
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

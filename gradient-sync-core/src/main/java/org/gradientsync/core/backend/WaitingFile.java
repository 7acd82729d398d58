package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The file by which a launcher that starts lost ranks again learns how a rank is. It is empty until
 * the rank takes part, and is gone then.
 */
public final class WaitingFile {
  /** The variable with its name. */
  public static final String VARIABLE = "GRADIENTSYNC_WAITING";

  private WaitingFile() {}

  /** Says that all ranks end, because too few are left: nobody needs to be started again. */
  public static void giveUp() {
    String file = LauncherVariables.environment().get(VARIABLE);
    try {
      if (file != null) {
        Files.writeString(Path.of(file), "too few ranks");
      }
    } catch (IOException e) {
      // the launcher starts this rank again, which waits once more
    }
  }
}

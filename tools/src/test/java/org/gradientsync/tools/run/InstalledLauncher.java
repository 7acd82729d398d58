package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Assumptions;

/** Asks for a launcher that is installed here. */
public final class InstalledLauncher {
  private InstalledLauncher() {}

  /** Skips the test if there is no such program. With GRADIENTSYNC_REQUIRE_MPI=1 it fails. */
  public static void require(String name) {
    boolean found =
        Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
            .anyMatch(path -> Files.isExecutable(Path.of(path, name)));
    if (!found) {
      String reason = "SKIPPED: there is no " + name + " on the PATH";
      System.out.println(reason);
      assertTrue(!"1".equals(System.getenv("GRADIENTSYNC_REQUIRE_MPI")), reason);
      Assumptions.abort(reason);
    }
  }
}

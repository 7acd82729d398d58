package org.gradientsync.tools.program;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** Creates temporary folders, and deletes them even if the program ends early. */
public final class Scratch {
  /** The start of the message if there is no folder. */
  public static final String NO_FOLDER = "no temporary folder can be made: ";

  private static final String TEMPORARY_FOLDER = "java.io.tmpdir";

  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

  private Scratch() {}

  /** Creates a folder that only this user can read. */
  public static Path open() throws IOException {
    Path folder = null;
    try {
      folder = Files.createTempDirectory("gradient-sync-doctor-");
      // A full disk may still take a folder.
      Files.delete(Files.write(folder.resolve("probe"), new byte[1]));
    } catch (IOException e) {
      close(folder);
      throw new IOException(NO_FOLDER + e, e);
    }
    OPEN.add(folder);
    return folder;
  }

  /** Returns what to do if nothing can be created in the temporary folder. */
  public static String advice() {
    return "%s=%s; free space there, or set JAVA_TOOL_OPTIONS=-D%s=DIR to a folder that can be written"
        .formatted(TEMPORARY_FOLDER, System.getProperty(TEMPORARY_FOLDER), TEMPORARY_FOLDER);
  }

  /** Deletes a folder and its content; null means none. */
  public static void close(Path folder) {
    if (folder == null) {
      return;
    }
    OPEN.remove(folder);
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException | RuntimeException e) {
      folder.toFile().deleteOnExit(); // a killed process may still have been writing
    }
  }

  public static void closeAll() {
    OPEN.forEach(Scratch::close);
  }
}

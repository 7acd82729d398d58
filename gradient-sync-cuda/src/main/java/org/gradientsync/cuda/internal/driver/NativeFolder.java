package org.gradientsync.cuda.internal.driver;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.gradientsync.UnavailableException;
import org.gradientsync.internal.host.TemporaryFiles;

/**
 * A private folder for JCuda's natives.
 *
 * <p>JCuda unpacks them to fixed files in the temporary folder, so ranks that start together
 * overwrite each other's (and end with SIGBUS), and a file that another user put there would be
 * loaded. Here the temporary folder is a fresh private one while JCuda looks for it. It is deleted
 * when the JVM exits; that of a killed process, by the next one of the same user.
 */
public final class NativeFolder {
  private static final String TEMPORARY = "java.io.tmpdir";

  private NativeFolder() {}

  /**
   * Loads natives, one library at a time: nobody else may take the private folder for the real one.
   *
   * @param loading touches the JCuda class that loads them
   * @return what it gives
   * @throws UnavailableException if no private folder can be made
   */
  public static synchronized <T> T whileLoading(Supplier<T> loading) {
    String before = System.getProperty(TEMPORARY);
    Path folder;
    try {
      folder = new TemporaryFiles("cuda").createFolder();
    } catch (IOException e) {
      throw new UnavailableException("no private folder can be made in " + before, e);
    }
    try {
      System.setProperty(TEMPORARY, folder.toString());
      return loading.get();
    } finally {
      System.setProperty(TEMPORARY, before);
      deleteAtExit(folder);
    }
  }

  /**
   * The line that names the library, out of the pages that JCuda says, or a class that is missing.
   */
  public static String reason(LinkageError e) {
    if (e.getCause() instanceof ClassNotFoundException missing) {
      return "a jar is not on the class path: class=" + missing.getMessage();
    }
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    return message
        .lines()
        .filter(line -> line.contains(".so"))
        .findFirst()
        .orElse(message.lines().findFirst().orElse(e.toString()))
        .strip()
        .replaceFirst("^\\S+Error: ", "")
        .replaceFirst("^/\\S+/", ""); // a private folder says nothing to a reader
  }

  private static void deleteAtExit(Path folder) {
    folder.toFile().deleteOnExit();
    try (var files = Files.walk(folder)) {
      files.skip(1).forEach(f -> f.toFile().deleteOnExit());
    } catch (IOException e) {
      throw new UnavailableException("the private folder cannot be read: folder=" + folder, e);
    }
  }
}

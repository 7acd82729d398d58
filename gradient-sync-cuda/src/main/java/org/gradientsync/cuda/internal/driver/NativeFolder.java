package org.gradientsync.cuda.internal.driver;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import jcuda.JCudaVersion;
import jcuda.LibUtils;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.NativeClasses;
import org.gradientsync.core.backend.TemporaryFiles;

/**
 * Makes JCuda unpack its natives to a private folder.
 *
 * <p>By itself, JCuda unpacks them to fixed files in the temporary folder. Ranks that start
 * together would overwrite each other's files and die with SIGBUS, and JCuda would load a file that
 * another user put there. So while JCuda loads natives, this class sets the temporary folder to a
 * new private one. It is deleted when the JVM exits; after a kill, the next process of the same
 * user deletes it.
 */
public final class NativeFolder {
  private static final String TEMPORARY_FOLDER = "java.io.tmpdir";
  private static final List<String> LIBRARIES = List.of("JCudaDriver", "JCublas2", "JNvrtc");

  private NativeFolder() {}

  /**
   * Loads natives, one library at a time: a concurrent call would take this call's private folder
   * for the real one.
   *
   * @param loading uses the JCuda class that loads the natives
   * @return the result of {@code loading}
   * @throws UnavailableException if no private folder can be created
   */
  public static synchronized <T> T whileLoading(Supplier<T> loading) {
    String before = System.getProperty(TEMPORARY_FOLDER);
    Path folder;
    try {
      folder = new TemporaryFiles("cuda").createFolder();
      unpack(folder);
    } catch (IOException e) {
      throw new UnavailableException(
          "no private folder can be made: folder=%s, reason=%s; %s"
              .formatted(before, e, NativeClasses.FOLDER_ADVICE),
          e);
    }
    try {
      System.setProperty(TEMPORARY_FOLDER, folder.toString());
      return loading.get();
    } finally {
      System.setProperty(TEMPORARY_FOLDER, before);
      deleteAtExit(folder);
    }
  }

  /** JCuda looks in its own module only, and takes a file that is there already. */
  private static void unpack(Path folder) throws IOException {
    for (String library : LIBRARIES) {
      String name = LibUtils.createPlatformLibraryName(library + "-" + JCudaVersion.get());
      String file = LibUtils.createLibraryFileName(name);
      String resource = "lib/" + file;
      if (LibUtils.class.getResource("/" + resource) == null) {
        try (InputStream in = NativeFolder.class.getClassLoader().getResourceAsStream(resource)) {
          if (in != null) { // a module
            Files.copy(in, folder.resolve(file));
          }
        }
      }
    }
  }

  /**
   * One line that says why natives cannot be loaded: the class that is missing, or, of JCuda's long
   * message, the line that names the library.
   */
  public static String reason(LinkageError e) {
    if (e.getCause() instanceof ClassNotFoundException missing) {
      return "a jar is not on the class path: class=" + missing.getMessage();
    }
    String known = NativeClasses.knownReason(e, jcuda.Pointer.class, NativeFolder.class);
    if (known != null) {
      return known;
    }
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    return message
        .lines()
        .filter(line -> line.contains(".so"))
        .findFirst()
        .orElse(message.lines().findFirst().orElse(e.toString()))
        .strip()
        .replaceFirst("^\\S+Error: ", "")
        .replaceFirst("^/\\S+/", ""); // the private folder means nothing to a reader
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

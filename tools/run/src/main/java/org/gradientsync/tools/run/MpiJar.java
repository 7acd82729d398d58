package org.gradientsync.tools.run;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.gradientsync.tools.program.ToolException;

/**
 * The Java bindings of Open MPI on a class path.
 *
 * @param file the jar or folder, or null if there are none
 * @param functions what some classes call in the native library
 */
record MpiJar(String file, Set<String> functions) {
  static final MpiJar NONE = new MpiJar(null, Set.of());

  /**
   * Classes that tell releases apart. No jar says its version, but each release whose jar does not
   * fit an older library calls a new function of one of these: 2.0 and 3.1 of Comm, 5.0 of
   * Errhandler.
   */
  private static final List<String> TELLING = List.of("mpi.MPI", "mpi.Comm", "mpi.Errhandler");

  /** Finds the bindings. Initializes none of their classes, as that would load the library. */
  static MpiJar of(URLClassLoader loader) {
    URL mpi = loader.findResource("mpi/MPI.class");
    if (mpi == null) {
      return NONE;
    }
    String file =
        mpi.toString()
            .replaceFirst("^jar:", "")
            .replaceFirst("^file:", "")
            .replaceFirst("!?/mpi/MPI.class$", "");
    // Other MPIs for Java have a class of this name, too, but not the next one.
    if (loader.findResource("mpi/Freeable.class") == null) {
      throw ToolException.cannotRun(
          "the class path has an mpi.jar that is not Open MPI's: file=%s; leave it out, or give"
              + " the one of this mpirun, as docs/open-mpi.md says",
          file);
    }
    Set<String> functions = new TreeSet<>();
    try {
      for (String name : TELLING) {
        for (Method method : loader.loadClass(name).getDeclaredMethods()) {
          if (Modifier.isNative(method.getModifiers())) {
            functions.add(function(name, method.getName()));
          }
        }
      }
    } catch (ClassNotFoundException | LinkageError e) {
      throw ToolException.cannotRun(
          "the mpi.jar cannot be loaded: file=%s, error=%s; give the one of this mpirun, as"
              + " docs/open-mpi.md says",
          file, e);
    }
    return new MpiJar(file, functions);
  }

  /** Returns the name of a native method in a library, by the rules of the JNI. */
  private static String function(String className, String method) {
    return "Java_" + className.replace('.', '_') + "_" + method.replace("_", "_1");
  }

  boolean isThere() {
    return file != null;
  }

  /** Returns a function that a library lacks, or empty if it fits. */
  Optional<String> missingIn(Path library) {
    String names; // a library has those of its functions, each with a zero behind
    try {
      names = Files.readString(library, StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      return Optional.empty(); // ranks will say why
    }
    return functions.stream()
        .filter(name -> !names.contains(name + '\0') && !names.contains(name + "__"))
        .findFirst();
  }
}

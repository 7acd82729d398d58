package org.gradientsync.core.backend;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.gradientsync.UnavailableException;

/**
 * Initializes classes that load a native library, such as JNA's, and says in one sentence why one
 * cannot. The JVM gives the reason only at the first attempt.
 */
public final class NativeClasses {
  private static final String JNA = "com.sun.jna.Native";
  private static final String JNA_FOLDER = "jna.tmpdir";
  private static final String TEMPORARY_FOLDER = "java.io.tmpdir";

  /** What to do where a library cannot be unpacked. */
  public static final String FOLDER_ADVICE =
      "start java with -Djava.io.tmpdir=DIR and -Djna.tmpdir=DIR, DIR being a folder for unpacked"
          + " libraries: this user can write to it, and its file system is not mounted noexec";

  /** Messages of JNA and the loader if the temporary folder is mounted noexec, or is full. */
  private static final Pattern OF_FOLDER =
      Pattern.compile(
          "(?<!cannot open shared object file: )(failed to map segment|temporary directory"
              + "|Read-only file system|Permission denied|No space left|quota exceeded|No such file)");

  private static final Map<String, String> FAILURES = new HashMap<>(); // by class

  private NativeClasses() {}

  /**
   * Initializes JNA.
   *
   * @param user a class of the module that calls JNA
   * @throws UnavailableException if it cannot be used; the message is one line that says why, and
   *     the same at each attempt
   */
  public static void requireJna(Class<?> user) {
    String failure = jnaFailure(user);
    if (failure != null) {
      throw new UnavailableException("JNA cannot be used: " + failure);
    }
  }

  /**
   * Initializes JNA.
   *
   * @param user a class of the module that calls JNA
   * @return null, or why it cannot be used
   */
  public static synchronized String jnaFailure(Class<?> user) {
    String home = System.getProperty("user.home", "");
    String cache = System.getenv("XDG_CACHE_HOME");
    if (!Path.of(home).isAbsolute() && (cache == null || cache.isBlank())) {
      // The home of a user without a name is "?". JNA would make a folder of that name.
      System.getProperties().putIfAbsent(JNA_FOLDER, System.getProperty(TEMPORARY_FOLDER));
    }
    return failure(JNA, user);
  }

  /**
   * Initializes a class.
   *
   * @param name its name
   * @param user a class whose loader finds it, and whose module calls it
   * @return null, or why it cannot be used
   */
  public static synchronized String failure(String name, Class<?> user) {
    if (!FAILURES.containsKey(name)) {
      try {
        Class.forName(name, true, user.getClassLoader());
        return null;
      } catch (ClassNotFoundException e) {
        return "a jar is not on the class path: class=" + name;
      } catch (LinkageError e) {
        FAILURES.put(name, "class=" + name + ", " + reason(e, owner(name, user), user));
      }
    }
    return FAILURES.get(name);
  }

  private static Class<?> owner(String name, Class<?> user) {
    try {
      return Class.forName(name, false, user.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e); // it was found before
    }
  }

  private static String reason(LinkageError e, Class<?>... users) {
    String known = knownReason(e, users);
    return known != null ? known : "reason=" + text(e).lines().findFirst().orElse("").strip();
  }

  /** The message of the first cause, which may have several lines. */
  private static String text(LinkageError e) {
    Throwable root = e;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return root instanceof LinkageError && root.getMessage() != null
        ? root.getMessage()
        : root.toString();
  }

  /**
   * One line that says why a class did not load its library, and what to do: start the JVM with
   * native access, or with a folder in which the library can be unpacked.
   *
   * @param e what the class's initialization threw
   * @param users classes of the modules that need native access
   * @return null if the reason is another
   */
  public static String knownReason(LinkageError e, Class<?>... users) {
    String text = text(e);
    if (text.contains("IllegalCallerException")) {
      return "reason=this JVM denies native access; start java with --enable-native-access="
          + Arrays.stream(users)
              .map(user -> user.getModule().isNamed() ? user.getModule().getName() : "ALL-UNNAMED")
              .distinct()
              .collect(Collectors.joining(","));
    }
    return text.lines()
        .filter(OF_FOLDER.asPredicate())
        .findFirst()
        .map(line -> line.strip().replaceFirst("^\\S+Error: ", ""))
        .map(line -> line.replaceFirst("^(\\S+: )\\1", "$1")) // the loader repeats the file
        .map(line -> "reason=" + line + "; " + FOLDER_ADVICE)
        .orElse(null);
  }
}

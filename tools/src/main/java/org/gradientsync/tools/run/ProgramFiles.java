package org.gradientsync.tools.run;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.gradientsync.tools.ToolException;

/**
 * The user's program: class path, main class and arguments. Runs none of its classes.
 *
 * @param classPath as the user wrote it; the jar for {@code -jar}
 * @param isJar whether the class path is a jar that names its main class
 */
record ProgramFiles(
    String classPath, boolean isJar, String mainClass, List<String> arguments, MpiJar mpiJar) {
  static ProgramFiles onClassPath(String classPath, String mainClass, List<String> arguments) {
    List<URL> urls = urls(classPath);
    try (URLClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), null)) {
      String file = mainClass.replace('.', '/') + ".class";
      if (loader.findResource(file) == null) {
        throw ToolException.badUse(
            "the class path has no such class: class="
                + mainClass
                + ", class path="
                + classPath
                + "; give the class with its package, and --class-path with all folders and jars");
      }
      return new ProgramFiles(classPath, false, mainClass, arguments, MpiJar.of(loader));
    } catch (IOException e) {
      throw unreadable(classPath, e);
    }
  }

  static ProgramFiles inJar(String jar, List<String> arguments) {
    if (!Files.isRegularFile(Path.of(jar))) {
      throw ToolException.badUse("there is no such jar: -jar " + jar);
    }
    try (JarFile file = new JarFile(jar);
        URLClassLoader loader = new URLClassLoader(new URL[] {url(Path.of(jar))}, null)) {
      Manifest manifest = file.getManifest();
      String mainClass =
          manifest == null ? null : manifest.getMainAttributes().getValue("Main-Class");
      if (mainClass == null) {
        throw ToolException.badUse(
            "the jar names no main class: -jar "
                + jar
                + "; give --class-path "
                + jar
                + " and the class instead");
      }
      return new ProgramFiles(jar, true, mainClass.strip(), arguments, MpiJar.of(loader));
    } catch (IOException e) {
      throw unreadable(jar, e);
    }
  }

  private static ToolException unreadable(String what, IOException e) {
    return ToolException.badUse(
        "a jar cannot be read: class path=" + what + ", error=" + e.getMessage());
  }

  private static List<URL> urls(String classPath) {
    List<URL> urls = new ArrayList<>();
    for (String entry : classPath.split(File.pathSeparator)) {
      if (entry.isEmpty()) {
        urls.add(url(Path.of("")));
      } else if (entry.equals("*") || entry.endsWith("/*")) {
        urls.addAll(jars(entry, classPath));
      } else if (Files.exists(Path.of(entry))) {
        urls.add(url(Path.of(entry)));
      } else {
        throw missing(entry, classPath);
      }
    }
    return urls;
  }

  private static List<URL> jars(String entry, String classPath) {
    Path folder = Path.of(entry.substring(0, entry.length() - 1));
    if (!Files.isDirectory(folder.toAbsolutePath())) {
      throw missing(entry, classPath);
    }
    try (Stream<Path> files = Files.list(folder.toAbsolutePath())) {
      List<URL> jars =
          files
              .filter(file -> file.toString().matches(".*\\.(jar|JAR)"))
              .map(ProgramFiles::url)
              .toList();
      if (jars.isEmpty()) {
        throw ToolException.badUse("there is no jar where the class path has some: entry=" + entry);
      }
      return jars;
    } catch (IOException e) {
      throw unreadable(entry, e);
    }
  }

  private static ToolException missing(String entry, String classPath) {
    return ToolException.badUse(
        "the class path has an entry that does not exist: entry="
            + entry
            + ", folder="
            + Path.of("").toAbsolutePath()
            + ", class path="
            + classPath
            + "; correct it, or leave it out");
  }

  private static URL url(Path file) {
    try {
      return file.toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalArgumentException("no URL: file=" + file, e); // those of files have one
    }
  }
}

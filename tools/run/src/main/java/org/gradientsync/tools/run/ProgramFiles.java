package org.gradientsync.tools.run;

import java.io.File;
import java.io.IOException;
import java.lang.module.FindException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.gradientsync.tools.program.ToolException;

/**
 * The user's program: class path or module path, main class and arguments. Runs none of its
 * classes.
 *
 * @param classPath as the user wrote it; the jar for {@code -jar}; may be null beside a module path
 * @param isJar whether the class path is a jar that names its main class
 * @param mainClass on a module path {@code MODULE/CLASS} or {@code MODULE}, as java takes it
 * @param modulePath as the user wrote it, or null for a program on the class path
 * @param nativeModules what calls native code, in the words of {@code --enable-native-access}
 */
record ProgramFiles(
    String classPath,
    boolean isJar,
    String mainClass,
    List<String> arguments,
    MpiJar mpiJar,
    String modulePath,
    String nativeModules) {
  private static final String UNNAMED = "ALL-UNNAMED";

  /** The modules of this library and those below it that call native code. */
  private static final List<String> NATIVE =
      List.of("com.sun.jna", "org.gradientsync.mpi", "org.gradientsync.cuda", "jcuda", "jcublas");

  ProgramFiles(
      String classPath, boolean isJar, String mainClass, List<String> arguments, MpiJar mpiJar) {
    this(classPath, isJar, mainClass, arguments, mpiJar, null, UNNAMED);
  }

  /**
   * A program on the module path.
   *
   * @param classPath null for none
   * @param main {@code MODULE/CLASS}, or {@code MODULE} if it names its main class
   */
  static ProgramFiles inModule(
      String modulePath, String classPath, String main, List<String> arguments) {
    urls(modulePath, "module path"); // requires that all entries exist
    Path[] places =
        Stream.of(modulePath.split(File.pathSeparator)).map(Path::of).toArray(Path[]::new);
    String name = main.split("/", 2)[0];
    try {
      ModuleFinder finder = ModuleFinder.of(places);
      ModuleReference module =
          finder
              .find(name)
              .orElseThrow(
                  () ->
                      ToolException.badUse(
                          "the module path has no such module: module=%s, module path=%s; give -m"
                              + " MODULE/CLASS, and --module-path with all folders and modules",
                          name, modulePath));
      if (main.contains("/")) {
        String file = main.substring(name.length() + 1).replace('.', '/') + ".class";
        try (ModuleReader reader = module.open()) {
          if (reader.find(file).isEmpty()) {
            throw ToolException.badUse(
                "the module has no such class: -m %s; give the class with its package", main);
          }
        }
      }
      List<URL> urls = new ArrayList<>(classPath == null ? List.of() : urls(classPath));
      for (ModuleReference each : finder.findAll()) {
        urls.add(each.location().orElseThrow().toURL());
      }
      String natives =
          Stream.concat(
                  NATIVE.stream().filter(each -> finder.find(each).isPresent()),
                  classPath == null ? Stream.empty() : Stream.of(UNNAMED))
              .collect(Collectors.joining(","));
      try (URLClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), null)) {
        return new ProgramFiles(
            classPath,
            false,
            main,
            arguments,
            MpiJar.of(loader),
            modulePath,
            natives.isEmpty() ? UNNAMED : natives);
      }
    } catch (FindException | IOException e) {
      throw ToolException.badUse(
          "a module cannot be read: module path=%s, error=%s", modulePath, e.getMessage());
    }
  }

  static ProgramFiles onClassPath(String classPath, String mainClass, List<String> arguments) {
    List<URL> urls = urls(classPath);
    try (URLClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), null)) {
      String file = mainClass.replace('.', '/') + ".class";
      if (loader.findResource(file) == null) {
        throw ToolException.badUse(
            "the class path has no such class: class=%s, class path=%s; give the class with its"
                + " package, and --class-path with all folders and jars",
            mainClass, classPath);
      }
      return new ProgramFiles(classPath, false, mainClass, arguments, MpiJar.of(loader));
    } catch (IOException e) {
      throw unreadable(classPath, e);
    }
  }

  static ProgramFiles inJar(String jar, List<String> arguments) {
    if (!Files.isRegularFile(Path.of(jar))) {
      throw ToolException.badUse("there is no such jar: -jar %s", jar);
    }
    try (JarFile file = new JarFile(jar);
        URLClassLoader loader = new URLClassLoader(new URL[] {url(Path.of(jar))}, null)) {
      Manifest manifest = file.getManifest();
      String mainClass =
          manifest == null ? null : manifest.getMainAttributes().getValue("Main-Class");
      if (mainClass == null) {
        throw ToolException.badUse(
            "the jar names no main class: -jar %s; give --class-path %s and the class instead",
            jar, jar);
      }
      return new ProgramFiles(jar, true, mainClass.strip(), arguments, MpiJar.of(loader));
    } catch (IOException e) {
      throw unreadable(jar, e);
    }
  }

  private static ToolException unreadable(String what, IOException e) {
    return ToolException.badUse(
        "a jar cannot be read: class path=%s, error=%s", what, e.getMessage());
  }

  private static List<URL> urls(String classPath) {
    return urls(classPath, "class path");
  }

  private static List<URL> urls(String classPath, String what) {
    List<URL> urls = new ArrayList<>();
    for (String entry : classPath.split(File.pathSeparator)) {
      if (entry.isEmpty()) {
        urls.add(url(Path.of("")));
      } else if (entry.equals("*") || entry.endsWith("/*")) {
        urls.addAll(jars(entry, classPath));
      } else if (Files.exists(Path.of(entry))) {
        urls.add(url(Path.of(entry)));
      } else {
        throw missing(entry, classPath, what);
      }
    }
    return urls;
  }

  private static List<URL> jars(String entry, String classPath) {
    Path folder = Path.of(entry.substring(0, entry.length() - 1));
    if (!Files.isDirectory(folder.toAbsolutePath())) {
      throw missing(entry, classPath, "class path");
    }
    try (Stream<Path> files = Files.list(folder.toAbsolutePath())) {
      List<URL> jars =
          files
              .filter(file -> file.toString().matches(".*\\.(jar|JAR)"))
              .map(ProgramFiles::url)
              .toList();
      if (jars.isEmpty()) {
        throw ToolException.badUse(
            "there is no jar where the class path has some: entry=%s", entry);
      }
      return jars;
    } catch (IOException e) {
      throw unreadable(entry, e);
    }
  }

  private static ToolException missing(String entry, String classPath, String what) {
    return ToolException.badUse(
        "the %s has an entry that does not exist: entry=%s, folder=%s, %s=%s; correct it, or"
            + " leave it out",
        what, entry, Path.of("").toAbsolutePath(), what, classPath);
  }

  private static URL url(Path file) {
    try {
      return file.toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalArgumentException("no URL: file=" + file, e); // those of files have one
    }
  }
}

package org.gradientsync.test.contract;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.gradientsync.local.LocalRanks;

/**
 * The command with which a test starts a rank in a process of its own. Such JVMs are many and
 * short, and share few cores: so they take their classes from an archive that all of them map, see
 * <a href="https://openjdk.org/jeps/350">JEP 350</a>.
 */
public final class RankJvm {
  /** The option of a rank that runs long enough for the optimizing compiler. */
  public static final String OPTIMIZED = "-XX:TieredStopAtLevel=4";

  private static final List<String> USUAL =
      List.of("-Dgradientsync.reports=off", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

  private RankJvm() {}

  /**
   * Makes a command, with the class path of the caller, its jars before its folders.
   *
   * @param options of the JVM; they count more than the usual ones
   * @param words the main class and its arguments
   * @return the command's words
   */
  public static List<String> command(List<String> options, String... words) {
    List<String> command = java();
    if (Archive.FILE != null) {
      command.add("-XX:SharedArchiveFile=" + Archive.FILE);
      command.add("-Xlog:cds=off"); // with another class path it does not fit
    }
    command.addAll(List.of("-cp", classPath(true)));
    command.addAll(options);
    command.addAll(List.of(words));
    return command;
  }

  private static List<String> java() {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(USUAL);
    return command;
  }

  /** Jars first, as the archive holds no classes of folders. */
  private static String classPath(boolean withFolders) {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(entry -> withFolders || entry.endsWith(".jar"))
        .sorted(Comparator.comparing(entry -> !entry.endsWith(".jar")))
        .collect(Collectors.joining(File.pathSeparator));
  }

  private static final class Archive {
    static final Path FILE = make();

    /** Returns null if there is none; then JVMs only start later. */
    private static Path make() {
      try {
        Path file = Files.createTempDirectory("ranks").resolve("classes.jsa");
        file.getParent().toFile().deleteOnExit();
        file.toFile().deleteOnExit();
        List<String> command = java();
        command.addAll(List.of("-cp", classPath(false), "-XX:ArchiveClassesAtExit=" + file));
        command.add(RankJvm.class.getName());
        Process process =
            new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        if (!process.waitFor(1, TimeUnit.MINUTES)) {
          process.destroyForcibly();
          return null;
        }
        return Files.exists(file) ? file : null;
      } catch (IOException e) {
        return null;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return null;
      }
    }
  }

  /**
   * Loads the library's classes, and those of the JDK that it uses.
   *
   * @param args none
   * @throws IOException if a jar cannot be read
   */
  public static void main(String[] args) throws IOException {
    LocalRanks.run(2, sync -> sync.average(new float[100_000]));
    for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
      if (Path.of(jar).getFileName().toString().startsWith("gradient-sync-")) {
        load(jar);
      }
    }
  }

  private static void load(String jar) throws IOException {
    try (JarFile file = new JarFile(jar)) {
      for (JarEntry entry : file.stream().toList()) {
        String name = entry.getName();
        if (name.endsWith(".class") && !name.contains("module-info")) {
          try {
            Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, loader());
          } catch (ClassNotFoundException | LinkageError e) {
            continue; // of a library that is not there
          }
        }
      }
    }
  }

  private static ClassLoader loader() {
    return RankJvm.class.getClassLoader();
  }
}

package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.mpi.MpiTrial;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;
import org.slf4j.simple.SimpleLogger;

/** Tests jars that were merged into one in which each file is that of the first jar with it. */
class MergedJarsTest {
  private static final Map<String, Class<?>> MODULES =
      Map.of(
          "api", GradientSync.class,
          "core", LocalRanks.class,
          "mpi", MpiTrial.class,
          "cuda", CudaDevice.class);

  private static final Pattern WARNING =
      Pattern.compile(
          "(?m)WARN .*gradient-sync-(\\w+) is on the class path, but META-INF/services");

  @TempDir Path merged;

  /** The program of the separate process. */
  public static final class Program {
    private Program() {}

    public static void main(String[] args) {
      LocalRanks.run(2, sync -> sync.average(new float[1]));
      GradientSync.create().close();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "api core mpi cuda, cuda mpi",
    "cuda mpi core api, core mpi",
    "mpi api cuda core, core cuda"
  })
  void eachModuleWhoseServicesAreLostIsWarnedOf(String order, String lost) throws Exception {
    for (String module : order.split(" ")) {
      merge(place(MODULES.get(module)));
    }
    assertEquals(lost, warnings(merged.toString()));
  }

  @Test
  void jarsThatAreNotMergedAreNotWarnedOf() throws Exception {
    assertEquals(
        "",
        warnings(
            MODULES.values().stream()
                .map(module -> place(module).toString())
                .collect(Collectors.joining(File.pathSeparator))));
  }

  /** The modules with a warning, in alphabetic order. */
  private static String warnings(String modules) throws Exception {
    String classPath =
        Stream.of(Program.class, LoggerFactory.class, SimpleLogger.class)
            .map(type -> place(type).toString())
            .collect(Collectors.joining(File.pathSeparator, modules + File.pathSeparator, ""));
    Path java = Path.of(System.getProperty("java.home"), "bin", "java");
    Process process =
        new ProcessBuilder(
                List.of(
                    java.toString(),
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    classPath,
                    Program.class.getName()))
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor(); // it fails where the host's own device is lost
    List<String> warned = WARNING.matcher(output).results().map(found -> found.group(1)).toList();
    assertTrue(process.exitValue() == 0 || !warned.isEmpty(), output);
    assertEquals(new TreeSet<>(warned).size(), warned.size(), output); // each once
    return String.join(" ", new TreeSet<>(warned));
  }

  private static Path place(Class<?> type) {
    return Path.of(URI.create(type.getProtectionDomain().getCodeSource().getLocation().toString()));
  }

  private void merge(Path module) throws Exception {
    if (Files.isDirectory(module)) {
      copy(module);
    } else {
      try (FileSystem jar = FileSystems.newFileSystem(module)) {
        copy(jar.getPath("/"));
      }
    }
  }

  private void copy(Path root) throws Exception {
    try (Stream<Path> files = Files.walk(root)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Path copy = merged.resolve(root.relativize(file).toString());
        if (Files.isDirectory(file)) {
          Files.createDirectories(copy);
        } else if (!Files.exists(copy)) {
          Files.copy(file, copy);
        }
      }
    }
  }
}

package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.Logger;

/** Runs the loops of the documents that start ranks as plain processes, in a project of theirs. */
class StartLoopIT {
  private static final Pattern LOOP = Pattern.compile("(?s)\nfor rank in .*?\ndone; wait\n");
  private static final String PORT = "=29500 ";
  private static final String MAIN =
      """
      package %s;

      public class %s {
        public static void main(String[] args) {
          try (var sync = org.gradientsync.GradientSync.create()) {
            float[] gradient = {sync.rank()};
            sync.average(gradient);
            System.out.println("rank " + sync.rank() + " averages " + gradient[0]);
          }
        }
      }
      """;

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({"README.md, my, Main", "docs/getting-started.md, demo, Average"})
  void theLoopStartsRanks(String page, String name, String main) throws Exception {
    Matcher loop = LOOP.matcher(Files.readString(Path.of("..", page)));
    assertTrue(loop.find());
    assertTrue(loop.group().contains(PORT), loop.group());
    Path lib = Files.createDirectories(folder.resolve("target/lib"));
    for (Class<?> one :
        List.of(GradientSync.class, LocalRanks.class, TcpLauncher.class, Logger.class)) {
      Path place = Path.of(one.getProtectionDomain().getCodeSource().getLocation().toURI());
      Path jar = lib.resolve(one.getSimpleName() + ".jar");
      if (Files.isDirectory(place)) {
        run("jar", "-cf", jar.toString(), "-C", place.toString(), ".");
      } else {
        Files.createSymbolicLink(jar, place);
      }
    }
    Path source = Files.writeString(folder.resolve(main + ".java"), MAIN.formatted(name, main));
    String classes = folder.resolve("target/classes").toString();
    run("javac", "-cp", System.getProperty("java.class.path"), "-d", classes, source.toString());

    String lines = loop.group().replace(PORT, "=" + Ranks.freePort() + " "); // others may use it
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-c", lines)
            .directory(folder.toFile())
            .redirectErrorStream(true);
    String java = Path.of(System.getProperty("java.home"), "bin").toString();
    builder.environment().merge("PATH", java, (path, first) -> first + ":" + path);
    Process process = builder.start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), text);
    for (int rank = 0; rank < 2; rank++) {
      assertTrue(text.contains("rank " + rank + " averages 0.5\n"), text);
    }
  }

  private static void run(String tool, String... words) {
    assertEquals(0, ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, words));
  }
}

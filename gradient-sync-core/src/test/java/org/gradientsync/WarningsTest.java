package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests warnings of programs that work, but not as their authors intend. */
@Timeout(60)
class WarningsTest {
  /** A new name in each run, because the library warns once in each process. */
  private static final String MISTYPED = "gradientsync.timout" + System.nanoTime();

  private static final List<Parameter> MODEL = List.of(new Parameter("w", DataType.FLOAT32, 5));

  @AfterEach
  void clear() {
    System.clearProperty("gradientsync.finite");
    System.clearProperty(MISTYPED);
  }

  /** The only warning among the lines. */
  private static String only(List<String> lines) {
    List<String> warnings = lines.stream().filter(line -> line.contains(" WARN ")).toList();
    assertEquals(1, warnings.size(), warnings::toString);
    return warnings.get(0);
  }

  /** The only warning of a run. */
  private static String warningOf(int ranks, RankTask task) {
    return only(Logged.lines(() -> LocalRanks.run(ranks, task)));
  }

  private static void assertContains(String text, String... parts) {
    for (String part : parts) {
      assertTrue(text.contains(part), text);
    }
  }

  @Test
  void anUnknownSetting() {
    System.setProperty(MISTYPED, "5");
    System.setProperty("gradientsync.finite", "false");
    String warning =
        only(
            Logged.lines(
                () -> {
                  LocalRanks.run(3, sync -> sync.barrier());
                  GradientSync.create().close();
                }));
    assertContains(warning, MISTYPED + "=5", "rank=", ", timeout, ", "finite");
  }

  @Test
  void anUnknownSettingOfTheBuilder() {
    String name = "wier" + System.nanoTime();
    String warning =
        only(Logged.lines(() -> GradientSync.builder().set(name, "float16").create().close()));
    assertContains(warning, "gradientsync." + name + "=float16", "rank=0", "wire");
  }

  @Test
  void aSyncOfAThreadThatIsNotARank() {
    String warning =
        warningOf(
            2,
            sync -> {
              if (sync.rank() == 1) {
                Thread child = new Thread(() -> GradientSync.create().close(), "kid");
                child.start();
                child.join();
              }
            });
    assertContains(warning, "\"kid\"", "averages with nobody");
    assertEquals(
        0,
        Logged.lines(() -> GradientSync.create().close()).stream()
            .filter(line -> line.contains(" WARN "))
            .count()); // after the run
  }

  @Test
  void aHookThatIgnoresInterrupts() {
    try (Logged logged = new Logged()) {
      BucketHook hook =
          bucket -> {
            while (!logged.text().contains("WarningsTest.lambda")) { // where it is
              Thread.interrupted();
              Thread.onSpinWait();
            }
          };
      LocalRanks.run(
          1,
          builder -> builder.timeout(Duration.ofSeconds(1)),
          sync -> {
            try (GradientBuckets buckets =
                GradientBuckets.builder(sync, MODEL).hook(hook).build()) {
              assertThrows(GradientSyncException.class, () -> buckets.ready(0));
            }
          });
      assertContains(
          logged.text(), "rank 0: the hook of the buckets has neither returned nor", "of 1 s;");
    }
  }

  @Test
  void aRankThatFailsWhileAnotherComputes() {
    List<String> lines;
    try (Logged logged = new Logged()) {
      assertThrows(
          GradientSyncException.class,
          () ->
              LocalRanks.run(
                  2,
                  sync -> {
                    if (sync.rank() == 1) {
                      throw new ArithmeticException("mine");
                    }
                    while (!logged.text().contains("mine")) {
                      Thread.onSpinWait(); // ignores interrupts
                    }
                  }));
      lines = logged.text().lines().toList();
    }
    String warning = only(lines);
    assertContains(warning, "rank 1 failed: ", "[rank-0]", "java.lang.ArithmeticException: mine");
  }

  @Test
  void noSyncThatIsNotClosed() {
    String warning =
        warningOf(
            1,
            sync -> {
              GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build();
              buckets.noSync().close();
              buckets.noSync(); // not closed
              buckets.close();
              buckets.close();
            });
    assertContains(warning, "rank 0: buckets are closed within noSync()");
  }

  @Test
  void noSyncOfManySteps() {
    String warning =
        warningOf(
            1,
            sync -> {
              try (GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build()) {
                for (int round = 0; round < 2; round++) {
                  GradientBuckets.NoSync noSync = buckets.noSync();
                  for (int step = 0; step < 499 + round; step++) {
                    buckets.finish();
                  }
                  noSync.close();
                  buckets.ready(0);
                  buckets.finish();
                }
              }
            });
    assertContains(warning, "rank 0: 500 steps have ended within noSync()");
  }

  @Test
  void aMisspelledSetting() {
    String name = "gradientSync.time_out" + System.nanoTime();
    System.setProperty(name, "5");
    try {
      assertContains(
          only(Logged.lines(() -> GradientSync.create().close())), name + "=5", "timeout");
    } finally {
      System.clearProperty(name);
    }
  }

  /** A program for a separate process. */
  public static final class Program {
    private Program() {}

    /** One of two ranks ends the process while the other waits. */
    public static void main(String[] arguments) {
      LocalRanks.run(
          2,
          sync -> {
            sync.barrier();
            if (sync.rank() == 1) {
              System.exit(0);
            }
            sync.barrier();
          });
    }
  }

  @Test
  void aRankThatExitsAndASettingInTheEnvironment() throws Exception {
    Map<String, String> environment = Map.of("GRADIENTSYNC_TIMEOUT", "7", "GRADIENTSYNC_HOME", "x");
    String output = outputOf(0, environment, Program.class);
    assertContains(
        output,
        "rank-1 has called System.exit",
        "[rank-0]",
        "environment variable GRADIENTSYNC_TIMEOUT=7");
    assertFalse(output.contains("GRADIENTSYNC_HOME"), output);
    assertFalse(output.contains("rank-0 has called"), output);
  }

  /** A program for a separate process, which uses up all memory. */
  public static final class Greedy {
    private static Object[] all = new Object[1];

    private Greedy() {}

    /** Runs out of memory before it prints. */
    public static void main(String[] arguments) {
      try {
        LocalRanks.run(1, sync -> takeAll());
      } finally {
        all = null;
      }
      System.out.println("returned");
    }

    private static void takeAll() {
      for (int bytes = 1 << 20; ; ) {
        try {
          all = new Object[] {all, new byte[bytes]};
        } catch (OutOfMemoryError e) {
          while (bytes == 0) {
            all = new Object[] {all}; // throws when no memory is left
          }
          bytes /= 2;
        }
      }
    }
  }

  @Test
  void aRunThatExhaustsTheMemoryFails() throws Exception {
    assertFalse(outputOf(1, Map.of(), Greedy.class, "-Xmx24m").contains("returned"));
  }

  /** A jar merged from several, which contains only the last one's list of reducers. */
  @Test
  void aListOfReducersThatAnotherJarHasOverwritten(@TempDir Path merged) throws Exception {
    Path classes =
        Path.of(Selection.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (Stream<Path> files = Files.walk(classes)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Path copy = merged.resolve(classes.relativize(file).toString());
        if (Files.isDirectory(file)) {
          Files.createDirectories(copy);
        } else {
          Files.copy(file, copy);
        }
      }
    }
    Files.writeString(merged.resolve("META-INF/services/org.gradientsync.spi.ReducerProvider"), "");
    String path = System.getProperty("java.class.path");
    System.setProperty("java.class.path", path.replace(classes.toString(), merged.toString()));
    try {
      String output = outputOf(1, Map.of(), Program.class, "-Dgradientsync.reducer=local");
      assertContains(
          output,
          "gradient-sync-core is on the class path, but META-INF/services/"
              + "org.gradientsync.spi.ReducerProvider does not name its classes",
          "ServicesResourceTransformer",
          "no such reducer: reducer=local, rank=",
          "; it is in gradient-sync-core, which is not on the class path, or whose META-INF/services");
    } finally {
      System.setProperty("java.class.path", path);
    }
  }

  /** Runs a program that ends with an exit code, and returns its output. */
  private static String outputOf(
      int exitCode, Map<String, String> environment, Class<?> main, String... options)
      throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    ProcessBuilder program = new ProcessBuilder(command).redirectErrorStream(true);
    program.environment().putAll(environment);
    Process process = program.start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(exitCode, process.waitFor(), output);
    return output;
  }
}

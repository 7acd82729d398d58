package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tcp.TcpLauncher;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.Logger;

/** Runs the commands of the documents that start ranks without MPI, in a project of theirs. */
class DocumentsIT {
  private static final Pattern BLOCK = Pattern.compile("(?ms)^```(\\w*)\n(.*?)\n```$");
  private static final Pattern RANKS = Pattern.compile("-np (\\d+)|WORLD_SIZE=(\\d+)");
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

  @BeforeEach
  void makeProject() throws Exception {
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
    OneMachine.ssh(folder, OneMachine.HERE);
  }

  @ParameterizedTest
  @CsvSource({
    "README.md, my, Main, 1",
    "docs/getting-started.md, demo, Average, 1",
    "docs/starting-without-mpi.md, my, Main, 4",
    "docs/when-a-rank-is-lost.md, my, Main, 1"
  })
  void theCommandsStartRanks(String page, String name, String main, int count) throws Exception {
    Path source = Files.writeString(folder.resolve(main + ".java"), MAIN.formatted(name, main));
    String classes = folder.resolve("target/classes").toString();
    run("javac", "-cp", System.getProperty("java.class.path"), "-d", classes, source.toString());
    int blocks = 0;
    Matcher block = BLOCK.matcher(Files.readString(repository().resolve(page)));
    while (block.find()) {
      String lines = block.group(2);
      boolean isShell = block.group(1).isEmpty();
      if (isShell && lines.contains(" " + name + "." + main) && !lines.contains("mpirun ")) {
        requireAverages(lines);
        blocks++;
      }
    }
    assertEquals(count, blocks, page);
  }

  private void requireAverages(String lines) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-c", here(lines))
            .directory(folder.toFile())
            .redirectErrorStream(true);
    String java = System.getProperty("java.home");
    builder.environment().put("JAVA_HOME", java);
    builder
        .environment()
        .merge("PATH", folder + "/bin:" + java + "/bin", (path, first) -> first + ":" + path);
    Process process = builder.start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), lines + "\n" + text);
    Matcher ranks = RANKS.matcher(lines);
    assertTrue(ranks.find(), lines);
    int size = Integer.parseInt(ranks.group(1) != null ? ranks.group(1) : ranks.group(2));
    for (int rank = 0; rank < size; rank++) {
      String says = "rank " + rank + " averages " + (size - 1) / 2f + "\n";
      assertTrue(text.contains(says), lines + "\n" + text);
    }
  }

  /** Puts in what a user does, who may have two machines: their commands run at the same time. */
  private static String here(String lines) throws IOException {
    String all =
        lines
            .replaceAll("/path/to/gradient-sync/|(?m)^(?=tools/bin)", repository() + "/")
            .replace(":29500", ":" + RanksAsProcesses.freePort())
            .replace("MASTER_PORT=29500", "MASTER_PORT=" + RanksAsProcesses.freePort())
            .replace("node0", "127.0.0.1")
            .replace("node1", "127.0.0.2")
            .replace("--class-path ...", "--class-path 'target/classes:target/lib/*'")
            .replaceAll("(?m)^(.*--node-rank[^#\n]*).*", "$1 & all+=(\\$!)");
    return "set -e\n" + all + "\nfor one in ${all[@]}; do wait $one; done\n";
  }

  private static Path repository() {
    return Path.of(System.getProperty("basedir", "")).toAbsolutePath().getParent();
  }

  private static void run(String tool, String... words) {
    assertEquals(0, ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, words));
  }
}

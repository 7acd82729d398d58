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
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.mpi.MpiLauncher;
import org.gradientsync.tcp.TcpLauncher;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.Logger;

/**
 * Runs the commands of the documents that start ranks without MPI, or under one that lets them
 * live, in a project of theirs.
 */
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

  /** Rank 1 is killed, and the others average without it. */
  private static final String MAIN_THAT_GOES_ON =
      """
      package my;

      import org.gradientsync.GradientSync;
      import org.gradientsync.RankLostException;

      public class Main {
        public static void main(String[] args) throws Exception {
          GradientSync sync = GradientSync.create();
          int rank = sync.rank();
          sync.barrier();
          if (rank == 1) {
            String self = "" + ProcessHandle.current().pid();
            new ProcessBuilder("kill", "-KILL", self).start().waitFor();
          }
          try {
            sync.barrier();
          } catch (RankLostException e) {
            sync = sync.survivors();
          }
          float[] gradient = {rank};
          sync.average(gradient);
          System.out.println("rank %s averages %s".formatted(rank, gradient[0]));
        }
      }
      """;

  @TempDir Path folder;

  @BeforeEach
  void makeProject() throws Exception {
    Files.createDirectories(folder.resolve("target/lib"));
    for (Class<?> one :
        List.of(GradientSync.class, LocalRanks.class, TcpLauncher.class, Logger.class)) {
      addToLib(one);
    }
    OneMachine.ssh(folder, OneMachine.HERE);
  }

  private void addToLib(Class<?> one) throws Exception {
    Path place = Path.of(one.getProtectionDomain().getCodeSource().getLocation().toURI());
    Path jar = folder.resolve("target/lib").resolve(one.getSimpleName() + ".jar");
    if (Files.isDirectory(place)) {
      run("jar", "-cf", jar.toString(), "-C", place.toString(), ".");
    } else {
      Files.createSymbolicLink(jar, place);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "README.md, my, Main, 1",
    "docs/getting-started.md, demo, Average, 1",
    "docs/starting-without-mpi.md, my, Main, 4",
    "docs/when-a-rank-is-lost.md, my, Main, 1"
  })
  void theCommandsStartRanks(String page, String name, String main, int count) throws Exception {
    compile(main, MAIN.formatted(name, main));
    List<String> blocks =
        blocks(page, " " + name + "." + main).filter(lines -> !lines.contains("mpirun ")).toList();
    for (String lines : blocks) {
      requireAverages(lines);
    }
    assertEquals(count, blocks.size(), page);
  }

  /** The variable is that of {@code UlfmIT}. */
  @Test
  @Tag("ulfm")
  void theOthersGoOnUnderMpirun() throws Exception {
    String prefix = System.getenv("GRADIENTSYNC_TEST_ULFM");
    if (prefix == null) {
      String reason = "SKIPPED: GRADIENTSYNC_TEST_ULFM names no Open MPI 5 that lets ranks live";
      System.out.println(reason);
      Assumptions.abort(reason);
    }
    addToLib(MpiLauncher.class);
    addToLib(Class.forName("com.sun.jna.Native"));
    compile("Main", MAIN_THAT_GOES_ON);
    List<String> blocks =
        blocks("docs/when-a-rank-is-lost.md", "mpirun --with-ft ulfm -np 4 ").toList();
    assertEquals(1, blocks.size());
    String place = "export PATH='%1$s/bin':$PATH LD_LIBRARY_PATH='%1$s/lib'\n".formatted(prefix);
    String text = execute(place + blocks.get(0));
    for (int rank : new int[] {0, 2, 3}) {
      assertTrue(text.contains("rank %s averages %s\n".formatted(rank, 5 / 3f)), text);
    }
  }

  private void compile(String main, String text) throws IOException {
    Path source = Files.writeString(folder.resolve(main + ".java"), text);
    String classes = folder.resolve("target/classes").toString();
    run("javac", "-cp", System.getProperty("java.class.path"), "-d", classes, source.toString());
  }

  /** The shell commands of a page with some words. */
  private static Stream<String> blocks(String page, String words) throws IOException {
    return BLOCK
        .matcher(Files.readString(repository().resolve(page)))
        .results()
        .filter(block -> block.group(1).isEmpty() && block.group(2).contains(words))
        .map(block -> block.group(2));
  }

  private void requireAverages(String lines) throws Exception {
    String text = execute(here(lines));
    Matcher ranks = RANKS.matcher(lines);
    assertTrue(ranks.find(), lines);
    int size = Integer.parseInt(ranks.group(1) != null ? ranks.group(1) : ranks.group(2));
    for (int rank = 0; rank < size; rank++) {
      String says = "rank " + rank + " averages " + (size - 1) / 2f + "\n";
      assertTrue(text.contains(says), lines + "\n" + text);
    }
  }

  private String execute(String lines) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-c", lines)
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
    return text;
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

package org.gradientsync.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.tools.run.InstalledLauncher;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Unpacks the release in an empty folder, and uses it with nothing but a JDK and the system. */
class ReleaseIT {
  private static final Pattern PAGE = Pattern.compile("docs/[\\w-]+\\.md");

  @TempDir Path folder;

  private Path command;

  @BeforeEach
  void unpack() throws Exception {
    Path release;
    Path target = Path.of(System.getProperty("basedir", ""), "target");
    try (Stream<Path> files = Files.list(target)) {
      release = files.filter(file -> file.toString().endsWith(".tar.gz")).findFirst().orElseThrow();
    }
    run(0, "tar", "xzf", release.toAbsolutePath().toString());
    Path home = folder.resolve(release.getFileName().toString().replace(".tar.gz", ""));
    assertTrue(Files.exists(home.resolve("LICENSE")) && Files.exists(home.resolve("README.md")));
    requireLicences(home);
    command = Files.createDirectories(folder.resolve("a folder")).resolve("link");
    Files.createSymbolicLink(command, home.resolve("bin/gradient-sync"));
  }

  /** The libraries of others are listed with theirs. */
  private static void requireLicences(Path home) throws IOException {
    String listed = Files.readString(home.resolve("THIRD-PARTY.md"));
    try (Stream<Path> files = Files.list(home.resolve("lib"))) {
      for (Path file : files.toList()) {
        String name = file.getFileName().toString().replaceFirst("(-natives)?-\\d.*", "");
        assertTrue(name.startsWith("gradient-sync") || listed.contains("`" + name + "`"), name);
      }
    }
  }

  @Test
  void theReleaseHasEverything() throws Exception {
    String perf = run(0, command + "", "perf", "--local=2", "-e=1K", "-n=1", "-w=0", "--check");
    assertTrue(perf.contains("Out of bounds values : 0 OK"), perf);
    String usage = run(2, command + "", "perf", "collectives", "--nothing");
    String version = command.toRealPath().getParent().getParent().getFileName().toString();
    assertEquals(version.replaceFirst("-(?=\\d)", " ") + "\n", run(0, command + "", "--version"));
    String help = run(0, command + "", "perf", "--help");
    assertTrue(help.startsWith("Usage: gradient-sync perf "), help);
    assertTrue(
        usage.contains("gradient-sync perf collectives: Unknown option: '--nothing'"), usage);
    String doctor = run(null, command + "", "doctor");
    assertTrue(doctor.contains("\nReducer\n"), doctor);
    assertTrue(run(2, command + "").contains("Missing subcommand: run, doctor, perf or links"));
  }

  @Test
  void aJobOfTheReleaseRuns() throws Exception {
    InstalledLauncher.require("mpirun");
    String[] job = {"run", "-np=2", "--oversubscribe", "perf", "-e=1K", "-n=1", "-w=0", "--check"};
    List<String> words = new ArrayList<>(List.of(command.toString()));
    words.addAll(List.of(job));
    String perf = run(0, words.toArray(String[]::new));
    assertTrue(perf.contains("nRanks 2 launcher mpi") && perf.contains(" : 0 OK"), perf);
    // It has no mpi.jar, so doctor tries what the ranks of a program take.
    String doctor = run(null, command + "", "run", "-np=2", "--oversubscribe", "doctor");
    assertTrue(doctor.matches("(?s).*\\n +ranks +2\\n.*\\n +chosen +shared\\n.*"), doctor);
    Path home = command.toRealPath().getParent().getParent();
    for (Matcher page = PAGE.matcher(doctor); page.find(); ) {
      assertTrue(Files.exists(home.resolve(page.group())), page.group());
    }
    assertFalse(doctor.contains("script/") || doctor.contains("examples/"), doctor);
  }

  /** Returns all that it prints. */
  private String run(Integer code, String... words) throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(words).directory(folder.toFile()).redirectErrorStream(true);
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("JAVA_OPTS", "-XX:TieredStopAtLevel=1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    Process process = builder.start();
    process.getOutputStream().close();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    int ended = process.waitFor();
    assertEquals(code == null ? ended : code, ended, text);
    return text;
  }
}

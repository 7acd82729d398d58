package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the parts of script/measure/compare that need neither GPUs nor PyTorch. */
class CompareIT {
  private static final Path COMPARE = Script.BIN.resolveSibling("compare");
  private static final Path SAMPLE = COMPARE.resolve("sample");

  @TempDir Path folder;

  @Test
  void theFiguresStandSideBySide() throws Exception {
    Run run =
        Script.alone(python())
            .run(
                folder,
                table(),
                SAMPLE.resolve("4-ranks-rivals.json").toString(),
                SAMPLE.resolve("2-ranks-rivals.json").toString(),
                SAMPLE.resolve("2-ranks-gradient-sync.json").toString())
            .exits(0);
    assertEquals(Files.readString(SAMPLE.resolve("expected.txt")), run.out());
    assertEquals("", run.err());
  }

  @Test
  void allGatherHasItsOwnTable() throws Exception {
    List<String> command = new ArrayList<>(List.of(table(), "--collective=all-gather"));
    for (String file :
        List.of(
            "2-ranks-all-gather-rivals.json",
            "2-ranks-all-gather-gradient-sync.json",
            "2-ranks-rivals.json",
            "2-ranks-gradient-sync.json")) { // the last two are of all-reduces
      command.add(SAMPLE.resolve(file).toString());
    }
    Run run = Script.alone(python()).run(folder, command.toArray(String[]::new)).exits(0);
    assertEquals(Files.readString(SAMPLE.resolve("expected-all-gather.txt")), run.out());
    assertEquals("", run.err());
  }

  @Test
  void reduceScatterIsReadFromTheSameFile() throws Exception {
    Script.alone(python())
        .run(
            folder,
            table(),
            "--collective=reduce-scatter",
            SAMPLE.resolve("2-ranks-all-gather-rivals.json").toString(),
            SAMPLE.resolve("2-ranks-all-gather-gradient-sync.json").toString())
        .exits(0)
        .prints("## 2 ranks, reduce-scatter")
        .printsLike("\\| +1 KB \\|( +- \\|){3} +7\\.0 \\| +- \\| +0\\.1 \\|");
  }

  @Test
  void withoutPyTorchTheRivalsSayWhy() throws Exception {
    Files.writeString(folder.resolve("torch.py"), "raise ImportError('invented')\n");
    Script.alone(python())
        .set("PYTHONPATH", folder.toString())
        .set("PYTHONDONTWRITEBYTECODE", "1")
        .run(folder, COMPARE.resolve("collectives.py").toString(), "--ranks=2", "--json=no.json")
        .exits(3)
        .complainsInOneLine("collectives.py: PyTorch cannot be imported: invented");
  }

  @Test
  void anotherReducerCanBeCompared() throws Exception {
    Script.alone(python())
        .run(
            folder,
            table(),
            "--reducer=host-staged",
            SAMPLE.resolve("2-ranks-gradient-sync.json").toString())
        .exits(0)
        .printsLike("\\| bytes \\|.* gradient-sync host-staged \\|.*")
        .printsLike("\\| +1 KB \\|( +- \\|){5} +60\\.0 \\| +- \\| +0\\.0 \\|");
  }

  @Test
  void whatIsMissingOrBrokenIsLeftOut() throws Exception {
    Path broken = Files.writeString(folder.resolve("broken.json"), "{\"results\": [");
    Run run =
        Script.alone(python()).run(folder, table(), broken.toString(), "no-such.json").exits(0);
    run.prints("nothing was measured");
    run.complains("left out: file=" + broken).complains("left out: file=no-such.json");
    assertEquals(2, run.err().lines().count(), run::toString);
  }

  @Test
  void withoutAGpuNothingIsCompared() throws Exception {
    Path tools = Files.createDirectory(folder.resolve("tools"));
    for (String tool : new String[] {"bash", "dirname", "readlink", "env", "date", "wc", "sed"}) {
      Path found = Path.of("/usr/bin", tool);
      Files.createSymbolicLink(
          tools.resolve(tool), Files.exists(found) ? found : Path.of("/bin", tool));
    }
    Path script = COMPARE.getParent().resolveSibling("script").resolve("measure/compare");
    Script.alone(script)
        .set("PATH", tools.toString())
        .run(folder)
        .exits(2)
        .complainsInOneLine("compare: there is no NVIDIA GPU here");
    Script.alone(script)
        .set("PATH", tools.toString())
        .run(folder, "--ranks", "two")
        .exits(2)
        .complainsInOneLine("compare: --ranks takes numbers like 2,4: --ranks two");
    Script.alone(script)
        .set("PATH", tools.toString())
        .run(folder, "--collective", "gather")
        .exits(2)
        .complainsInOneLine("or grouped: --collective gather");
    Run help = Script.alone(script).set("PATH", tools.toString()).run(folder, "--help").exits(0);
    assertTrue(help.out().contains("--max-bytes"), help::toString);
    assertTrue(help.out().contains("--collective"), help::toString);
  }

  @Test
  void ratiosAreDrawnForEachNumberOfRanks() throws Exception {
    String ratios = COMPARE.resolve("ratios.py").toString();
    String tables = SAMPLE.resolve("expected.txt").toString();
    Run run = Script.alone(python()).run(folder, ratios, tables, "2").exits(0);
    assertTrue(run.out().contains(">2 GPUs<"), run::toString);
    assertTrue(run.out().contains("<polyline points=\"50.0,167.5 450.0,70.0\""), run::toString);
    assertEquals(1, run.out().split("<polyline", -1).length - 1, run::toString);
    Script.alone(python())
        .run(folder, ratios, tables)
        .exits(1)
        .complainsInOneLine(
            "ratios.py: the file has no ratios of these numbers of ranks: ranks=[4]");
  }

  private static String table() {
    return COMPARE.resolve("table.py").toString();
  }

  private static Path python() {
    Optional<Path> found =
        Arrays.stream(System.getenv().getOrDefault("PATH", "").split(File.pathSeparator))
            .map(folder -> Path.of(folder, "python3"))
            .filter(Files::isExecutable)
            .findFirst();
    Assumptions.assumeTrue(found.isPresent(), "python3 is not on the PATH: no table is printed");
    return found.orElseThrow();
  }
}

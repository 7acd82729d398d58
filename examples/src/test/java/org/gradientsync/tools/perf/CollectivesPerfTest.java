package org.gradientsync.tools.perf;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.examples.Run;
import org.gradientsync.examples.Script;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYSeries;

/** Tests the measuring program of all collectives with ranks as threads. */
class CollectivesPerfTest {
  private static final String NOT_MEASURED = "N/A";

  private static final Path SAMPLE = Script.BIN.resolveSibling("compare").resolve("sample");

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({
    // collective, size, count, redop, root, busbw by algbw: for four ranks and 4096 bytes
    "all-reduce,     4096, 1024, avg,  -1, 1.5",
    "all-gather,     4096,  256, none, -1, 0.75",
    "reduce-scatter, 4096,  256, avg,  -1, 0.75",
    "broadcast,      4096, 1024, none,  0, 1",
    "reduce,         4096, 1024, avg,   0, 1",
    "all-to-all,     4096,  256, none, -1, 0.75",
    "send-receive,   4096, 1024, none, -1, 1",
    "grouped,        4096, 1024, avg,  -1, 1.5"
  })
  void tableHasTheDefinitionsOfNcclTests(
      String name, String size, String count, String op, String root, double factor) {
    Path json = folder.resolve("one.json");
    Run run =
        Run.of(
            new CollectivesPerf(),
            "--local=4",
            "-b=4K",
            "-e=4K",
            "-n=3",
            "--check",
            "--json=" + json,
            "--collective=" + name);
    run.exits(0)
        .prints("# Collective: " + name, "# Reducer: local", "# Out of bounds values : 0 OK");
    List<String[]> rows = AllReducePerfTest.rows(run);
    assertEquals(1, rows.size(), run::toString);
    String[] row = rows.get(0);
    assertEquals(List.of(size, count, "float", op, root), List.of(row).subList(0, 5));
    assertEquals("0", row[8], "#wrong out of place");
    boolean inPlace = PerfCollective.of(name).orElseThrow().hasInPlace();
    assertEquals(inPlace ? "0" : NOT_MEASURED, row[12], "#wrong in place");
    for (double[] bandwidths : bandwidths(json)) {
      assertEquals(bandwidths[0] * factor, bandwidths[1], 1e-9 * bandwidths[1]);
    }
  }

  /** Reads algbw and busbw of each result, which have more digits than the table. */
  private static List<double[]> bandwidths(Path json) {
    try {
      List<double[]> all = new ArrayList<>();
      for (Object each : (List<?>) JSON.std.mapFrom(Files.readString(json)).get("results")) {
        Map<?, ?> result = (Map<?, ?>) each;
        all.add(new double[] {(double) result.get("algbw"), (double) result.get("busbw")});
      }
      assertTrue(!all.isEmpty());
      return all;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void allElementsAreRight(int ranks) {
    LocalRanks.run(
        ranks,
        sync -> {
          for (PerfCollective collective : PerfCollective.ALL) {
            if (ranks < collective.fewestRanks()) {
              continue;
            }
            for (DataType type : DataType.values()) {
              requireRight(sync, collective, type, 70_001, false);
              if (collective.hasInPlace()) {
                requireRight(sync, collective, type, 3, true);
              }
            }
          }
        });
  }

  private static void requireRight(
      GradientSync sync, PerfCollective collective, DataType type, long count, boolean inPlace) {
    TimedCase.Setup setup = new TimedCase.Setup(type, ReduceOp.SUM, null, false, false);
    try (TimedCase one = new TimedCase(sync, collective, setup, count, inPlace)) {
      one.warmUp(2);
      assertEquals(0, one.wrong(), () -> collective + ", " + type + ", in place: " + inPlace);
    }
  }

  @Test
  void partsBeginWhereThoseOfNcclDo() {
    assertEquals(84, PerfCollective.of(Kind.ALL_GATHER).count(1024, DataType.FLOAT32, 3));
    assertEquals(1024 / 4, PerfCollective.of(Kind.BROADCAST).count(1024, DataType.FLOAT32, 3));
    assertEquals(2, PerfCollective.of(Kind.ALL_TO_ALL).count(24, DataType.FLOAT32, 3));
    assertEquals(1, PerfCollective.of(Kind.REDUCE_SCATTER).count(4, DataType.FLOAT32, 3));
  }

  static List<PerfCollective> all() {
    return PerfCollective.ALL;
  }

  /** A collective that does nothing has no right element where another rank's should be. */
  @ParameterizedTest
  @MethodSource("all")
  void wrongElementsAreCounted(PerfCollective collective) {
    CollectivesPerf lazy =
        new CollectivesPerf() {
          @Override
          TimedCase prepare(GradientSync sync, PerfCollective one, long count, boolean inPlace) {
            return new TimedCase(sync, one, setup(), count, inPlace) {
              @Override
              void enqueue() {
                // every rank keeps what it has
              }
            };
          }
        };
    Run run = Run.of(lazy, "--local=2", "-e=1K", "-n=2", "--check", "-c=" + collective).exits(1);
    String[] row = AllReducePerfTest.rows(run).get(0);
    for (int column : collective.hasInPlace() ? new int[] {8, 12} : new int[] {8}) {
      assertTrue(Long.parseLong(row[column]) >= 128, run::toString);
    }
    run.printsLike("# Out of bounds values : [12] FAILED");
  }

  @Test
  void oneRankHasNobodyToSendTo() {
    Run run =
        Run.of(new CollectivesPerf(), "-e=1K", "-n=2", "-c=send-receive,broadcast", "--check");
    run.exits(0).prints("# Skipped: send-receive takes 2 ranks or more");
    assertEquals(1, AllReducePerfTest.rows(run).size(), run::toString);
    Run.of(new CollectivesPerf(), "-e=1K", "-n=2", "-c=send-receive")
        .exits(3)
        .complains("nothing could be measured");
  }

  @Test
  void inPlaceLeavesOutTheRestWhereItCan() {
    Run run =
        Run.of(
            new CollectivesPerf(),
            "--local=2",
            "-e=1K",
            "-n=2",
            "--in-place",
            "-c=all-gather,all-to-all");
    List<String[]> rows = AllReducePerfTest.rows(run.exits(0));
    assertEquals(NOT_MEASURED, rows.get(0)[5]);
    assertTrue(Double.parseDouble(rows.get(0)[9]) > 0, run::toString);
    assertTrue(Double.parseDouble(rows.get(1)[5]) > 0, run::toString);
    assertEquals(NOT_MEASURED, rows.get(1)[9]);
  }

  @Test
  void plotHasALineForEachCollective() throws IOException {
    Path plot = folder.resolve("all.svg");
    Path json = folder.resolve("all.json");
    Run.of(
            new CollectivesPerf(),
            "--local=2",
            "-e=4K",
            "-n=2",
            "--host",
            "--plot=" + plot,
            "--json=" + json)
        .exits(0);
    String svg = Files.readString(plot);
    assertTrue(svg.contains("<svg ") && svg.strip().endsWith("</svg>"), svg);
    String text = Files.readString(json);
    JSON.std.mapFrom(text);
    assertTrue(text.startsWith("{\"program\": \"collectives-perf\", \"date\": \"20"), text);
    for (PerfCollective collective : PerfCollective.ALL) {
      assertTrue(text.contains("{\"collective\": \"" + collective + "\", \"reducer\": \"local\""));
    }
  }

  @Test
  void rivalsAreWrittenAndDrawn() throws IOException {
    Path plot = folder.resolve("one.svg");
    Path json = folder.resolve("one.json");
    Run.of(
            new CollectivesPerf(),
            "--local=2",
            "-e=1K",
            "-n=2",
            "-c=all-gather",
            "--plot=" + plot,
            "--json=" + json,
            "--rivals",
            SAMPLE.resolve("2-ranks-all-gather-rivals.json").toString(),
            SAMPLE.resolve("2-ranks-rivals.json").toString(), // of all-reduces
            SAMPLE.resolve("4-ranks-rivals.json").toString())
        .exits(0);
    String text = Files.readString(json);
    JSON.std.mapFrom(text);
    String rivals = text.substring(text.indexOf("\"rivals\": ["));
    assertEquals(3, rivals.split("\\{\"collective\": \"all-gather\", \"name\": ", -1).length - 1);
    assertTrue(rivals.contains("\"name\": \"nccl-symm\", \"bytes\": 1024, \"microseconds\": 8.0"));
    assertTrue(rivals.contains("\"algbw\": 0.128, \"busbw\": 0.064}"), rivals);
    assertTrue(Files.readString(plot).contains("<svg "));
  }

  @Test
  void eachRivalIsALine() throws IOException {
    PerfResult own =
        new PerfResult(
            PerfCollective.of(Kind.ALL_GATHER),
            "peer",
            true,
            1024,
            128,
            2,
            List.of(6.0),
            null,
            null);
    List<PerfResult> rivals = Rivals.read(SAMPLE.resolve("2-ranks-all-gather-rivals.json"));
    Map<String, List<PerfResult>> lines =
        PerfPlot.lines(new CollectivesPerf()::line, List.of(own), rivals);
    assertEquals(List.of("all-gather, peer", "nccl", "nccl-symm"), List.copyOf(lines.keySet()));
    assertEquals(2, lines.get("nccl").size());
    XYChart chart = PerfPlot.chart("title", "time (us)", PerfResult::microseconds, lines);
    assertEquals(
        List.copyOf(lines.keySet()),
        chart.getSeriesCollection().stream().map(XYSeries::getName).toList());
    assertArrayEquals(new double[] {10, 20}, chart.getSeries("nccl").getYData());
    assertEquals(10, chart.getSeries("all-gather, peer").getXData()[0], 1e-9); // 1K
    assertEquals(
        List.of("peer, in-place", "nccl", "nccl-symm"),
        List.copyOf(PerfPlot.lines(new AllReducePerf()::line, List.of(own), rivals).keySet()));
    List<PerfResult> both = new ArrayList<>(rivals);
    both.addAll(Rivals.read(SAMPLE.resolve("2-ranks-rivals.json")));
    assertTrue(
        PerfPlot.lines(new CollectivesPerf()::line, List.of(own), both)
            .containsKey("all-reduce, one-shot"));
    assertEquals(
        List.of("all-gather"),
        names(PerfPlot.lines(new CollectivesPerf()::line, List.of(own), List.of())));
  }

  private static List<String> names(Map<String, List<PerfResult>> lines) {
    return List.copyOf(lines.keySet());
  }

  @Test
  void rivalsThatCannotBeReadAreBadUse() throws IOException {
    Path file = folder.resolve("rivals.json");
    String[] command = {"--local=2", "-e=1K", "--json=" + folder.resolve("x"), "--rivals=" + file};
    Run.of(new CollectivesPerf(), command)
        .exits(2)
        .complainsInOneLine("cannot read the rivals: file=" + file + ", error=there is no such");
    for (String[] one :
        new String[][] {
          {"{", "it is not JSON: character=1"},
          {"{} {}", "it is not JSON: character=4"},
          {"{\"ranks\": 1, \"ranks\": 2}", "it is not JSON: character=23"},
          {"[".repeat(100_000), "it is not JSON: character=1001"},
          {"[]", "an object is expected"},
          {"{}", "not a positive number: ranks=null"},
          {"{\"ranks\": 2}", "it has no list of results"},
          {"{\"ranks\": 2, \"results\": [{}]}", "a result has no name"},
          {"{\"collective\": \"gather\"}", "no such collective: collective=gather"},
          {"{\"ranks\": 2, \"results\": [{\"name\": \"a\", \"bytes\": 0}]}", "number: bytes=0"}
        }) {
      Files.writeString(file, one[0]);
      Run.of(new CollectivesPerf(), command).exits(2).complainsInOneLine(one[1]);
    }
    Run.of(new CollectivesPerf(), "--local=2", "-e=1K", "--rivals=" + file)
        .exits(2)
        .complainsInOneLine("--rivals adds to --json or --plot, and neither is given");
  }

  @Test
  void onlyReducersThatDoNotWaitAreCaptured() {
    Run.of(new CollectivesPerf(), "--local=2", "--graph", "--reducer=local")
        .exits(2)
        .complainsInOneLine("reducer cannot be captured into a CUDA graph");
    Run.of(new CollectivesPerf(), "--local=2", "--graph", "--device=host")
        .exits(2)
        .complainsInOneLine("--graph needs GPUs and --device host refuses them.");
  }

  @Test
  void impossibleValuesAreBadUse() {
    Run.of(new CollectivesPerf(), "--local=2", "--collective=all-gather,gather")
        .exits(2)
        .complainsInOneLine("grouped: --collective gather.");
    Run.of(new CollectivesPerf(), "--local=2", "-t=INT32")
        .exits(2)
        .complainsInOneLine("average of integers is not defined");
    Run.of(new CollectivesPerf(), "--local=2", "-t=INT32", "-c=broadcast", "-e=1K", "-n=2")
        .exits(0);
    Run.of(new CollectivesPerf(), "--local=2", "-b=8M").exits(2).complainsInOneLine("-b 8388608");
  }
}

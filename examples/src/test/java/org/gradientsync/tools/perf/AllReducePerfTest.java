package org.gradientsync.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.examples.Run;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the measuring program with ranks as threads. */
public class AllReducePerfTest {
  @TempDir Path folder;

  /** Returns the columns of each line of results. */
  public static List<String[]> rows(Run run) {
    return run.out()
        .lines()
        .filter(line -> !line.startsWith("#"))
        .map(line -> line.strip().split("\\s+"))
        .toList();
  }

  @Test
  void tableIsThatOfAllReducePerf() {
    Run run =
        Run.of(new AllReducePerf(), "--local=2", "-b=1K", "-e=70K", "-f=8", "-n=3", "--check");
    run.exits(0).prints("# Out of bounds values : 0 OK", "# Reducer: local");
    run.printsLike("# Avg bus bandwidth    : \\d+\\.\\d+");
    run.printsLike(
        "# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong");
    List<String[]> rows = rows(run);
    assertEquals(3, rows.size(), run::toString);
    double busBandwidth = 0;
    for (int i = 0; i < 3; i++) {
      String[] row = rows.get(i);
      assertEquals(13, row.length, run::toString);
      int bytes = 1024 << 3 * i;
      assertEquals(
          List.of(Integer.toString(bytes), Integer.toString(bytes / 4), "float", "avg", "-1"),
          List.of(row).subList(0, 5));
      for (int column : new int[] {5, 9}) {
        double time = Double.parseDouble(row[column]);
        double bandwidth = Double.parseDouble(row[column + 1]);
        assertEquals(bytes / time / 1e3, bandwidth, 0.01 + 0.05 * bandwidth);
        assertEquals(row[column + 1], row[column + 2], "with two ranks both are the same");
        assertEquals("0", row[column + 3]);
        busBandwidth += bandwidth / 6;
      }
    }
    assertEquals(busBandwidth, run.number("# Avg bus bandwidth    :"), 0.02);
    assertEquals("", run.err());
  }

  @Test
  void whatIsNotMeasuredIsNotAvailable() {
    Run run = Run.of(new AllReducePerf(), "--local=3", "-e=1K", "-n=2", "--in-place").exits(0);
    String[] row = rows(run).get(0);
    assertEquals(List.of("N/A", "N/A", "N/A", "N/A"), List.of(row).subList(5, 9));
    assertEquals("N/A", row[12], "nobody has checked");
    double algorithm = Double.parseDouble(row[10]);
    assertEquals(algorithm * 4 / 3, Double.parseDouble(row[11]), 0.02);
  }

  @Test
  void oneRankHasNoBusBandwidth() throws IOException {
    Path plot = folder.resolve("one.svg");
    Run run = Run.of(new AllReducePerf(), "-e=1K", "-n=2", "--check", "--plot=" + plot).exits(0);
    assertEquals("0.00", rows(run).get(0)[7]);
    assertTrue(Files.size(plot) > 0);
  }

  @ParameterizedTest
  @CsvSource({
    "FLOAT16,half,SUM,sum",
    "BFLOAT16,bfloat16,MIN,min",
    "FLOAT64,double,MAX,max",
    "INT32,int32,PROD,prod",
    "INT64,int64,SUM,sum"
  })
  void typesAndOperationsHaveTheNamesOfNccl(
      DataType type, String typeName, ReduceOp op, String opName) {
    Run run =
        Run.of(
            new AllReducePerf(), "--local=2", "-e=2K", "-n=2", "--check", "-t=" + type, "-o=" + op);
    String[] row = rows(run.exits(0)).get(0);
    assertEquals(
        List.of(Integer.toString(1024 / type.sizeInBytes()), typeName, opName),
        List.of(row).subList(1, 4));
    assertEquals("0", row[8]);
    assertEquals("0", row[12]);
  }

  @Test
  void wrongElementsAreCountedOnAllRanks() {
    AllReducePerf lazy =
        new AllReducePerf() {
          @Override
          TimedCase prepare(
              GradientSync sync, PerfCollective collective, long count, boolean inPlace) {
            return new TimedCase(sync, collective, setup(), count, inPlace) {
              @Override
              void enqueue() {
                // every rank keeps its own numbers
              }
            };
          }
        };
    Run run = Run.of(lazy, "--local=2", "-e=1K", "-n=2", "--check").exits(1);
    String[] row = rows(run).get(0);
    assertEquals("512", row[8], run::toString);
    assertEquals("512", row[12], run::toString);
    run.prints("# Out of bounds values : 2 FAILED");
  }

  @Test
  void allReducersHaveATableOrAReason() {
    Run run = Run.of(new AllReducePerf(), "--local=2", "-e=1K", "-n=2", "--reducer=all").exits(0);
    run.prints("# Reducer: local");
    run.printsLike("# Skipped: reducer shared is not available, rank=0: shared: .*");
    run.printsLike("# Skipped: reducer host-staged is not available, rank=0: host-staged: .*");
    assertEquals(1, rows(run).size(), run::toString);
  }

  @Test
  void theHostsCostIsPrintedWhenAsked() {
    Run run = Run.of(new AllReducePerf(), "--local=2", "-e=1K", "-n=2", "--host").exits(0);
    for (String placement : List.of("in-place", "out-of-place")) {
      run.printsLike(
          "# host: size=1024 "
              + placement
              + " cpu=[\\d.]+ us, wall=[\\d.]+ us, allocated=[\\d.]+ bytes per call");
    }
    String turns = "# host: calls in place go to two queues by turns, streams on a GPU";
    assertFalse(run.out().contains(turns), run::toString);
    run = Run.of(new AllReducePerf(), "--local=2", "-e=1K", "-n=2").exits(0);
    assertFalse(run.out().contains("# host:"), run::toString);
    run =
        Run.of(new AllReducePerf(), "--local=2", "-e=1K", "-n=2", "--host", "--beside", "--check")
            .exits(0)
            .prints(turns);
    run.printsLike("# host: size=1024 in-place cpu=.*");
  }

  @Test
  void resultsAreWrittenForMachinesAndDrawn() throws IOException {
    Path json = folder.resolve("results.json");
    Path plot = folder.resolve("results.svg");
    Run.of(
            new AllReducePerf(),
            "--local=2",
            "-e=16K",
            "-n=2",
            "--check",
            "--host",
            "--json=" + json,
            "--plot=" + plot)
        .exits(0);
    String text = Files.readString(json);
    JSON.std.mapFrom(text);
    for (String part :
        List.of(
            "{\"program\": \"allreduce-perf\", \"date\": \"20",
            "\"ranks\": 2, ",
            "\"device\": \"host memory\", \"java\": \"",
            "\"type\": \"FLOAT32\", \"op\": \"AVERAGE\", \"graph\": false, \"wire\": \"FLOAT32\", \"beside\": false, \"results\": [",
            "\"reducer\": \"local\", \"bytes\": 16384, \"count\": 4096, \"placement\": \"in-place\"",
            "\"wrong\": 0, \"hostNanos\": ")) {
      assertTrue(text.contains(part), () -> part + " is not in " + text);
    }
    assertEquals(2 * 3, text.split("\"rounds\": \\[([^,]*,){4}[^,]*]", -1).length - 1, text);
    String svg = Files.readString(plot);
    assertTrue(svg.startsWith("<?xml"), svg);
    assertTrue(svg.contains("<svg ") && svg.strip().endsWith("</svg>"), svg);
  }

  @Test
  void whatCannotBeWrittenIsSaidBeforeMeasuring() {
    for (String option : List.of("--json", "--plot")) {
      Run run = Run.of(new AllReducePerf(), "--local=2", option + "=/no/such/folder/x.svg");
      run.exits(2).complainsInOneLine("cannot write there: file=/no/such/folder/x.svg");
    }
  }

  @Test
  void onlyReducersThatDoNotWaitAreCaptured() {
    Run.of(new AllReducePerf(), "--local=2", "--graph", "--reducer=local")
        .exits(2)
        .complainsInOneLine("reducer cannot be captured into a CUDA graph");
    Run.of(new AllReducePerf(), "--wire=int32")
        .exits(2)
        .complainsInOneLine("--wire takes BFLOAT16");
    Run.of(new AllReducePerf(), "--wire=float16", "--type=float64")
        .exits(2)
        .complainsInOneLine("for FLOAT32 gradients: --wire FLOAT16, --type FLOAT64");
    Run.of(new AllReducePerf(), "--json=a.svg", "--plot=./a.svg")
        .exits(2)
        .complainsInOneLine("two things cannot be written into one file: ./a.svg");
    Run.of(new AllReducePerf(), "--local=2", "--graph", "--device=host")
        .exits(2)
        .complainsInOneLine("--graph needs GPUs and --device host refuses them.");
    Run run = Run.of(new AllReducePerf(), "--local=2", "--graph").exits(3);
    run.complains("reducer cannot be captured into a CUDA graph");
    assertTrue(rows(run).isEmpty(), run::toString);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "-b=0",
        "-b=3",
        "-b=8M",
        "-b=1T",
        "-b=99999999999G",
        "-b=many",
        "-e=-1",
        "-e=1",
        "-f=1",
        "-n=0",
        "-w=-1",
        "--plot=plot.png"
      })
  void impossibleValuesAreBadUse(String option) {
    Run.of(new AllReducePerf(), "--local=2", option)
        .exits(2)
        .complainsInOneLine(option.substring(option.startsWith("--") ? 2 : 1).split("=")[0]);
  }

  @Test
  void integersHaveNoAverage() {
    Run.of(new AllReducePerf(), "--local=2", "-t=INT32")
        .exits(2)
        .complainsInOneLine("average of integers is not defined");
  }

  @Test
  void theHostsCostIsThatOfOneCall() {
    Object[] kept = new Object[1];
    HostCost cost = HostCost.of(1000, () -> kept[0] = new byte[10_000]);
    assertTrue(cost.bytes() >= 10_000 && cost.bytes() < 20_000, cost::toString);
    assertTrue(cost.wallNanos() > 0, cost::toString);
    assertEquals(cost.bytes() / 10, cost.dividedBy(10).bytes());
  }
}

package org.gradientsync.examples;

import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.spi.ReducerProvider;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Times averages of growing size, and prints them like NVIDIA's all_reduce_perf. Checks every
 * element on request.
 */
@Command(
    name = "allreduce-perf",
    description = {
      "Times all-reduces of growing size. The table is that of all_reduce_perf of NVIDIA's"
          + " nccl-tests, its columns and units included.",
      "",
      "algbw is the size of the buffer by the time; busbw is algbw * 2(n-1)/n for n ranks, which is"
          + " what crosses each rank's link in each direction. This library reduces in place."
          + " Out-of-place means: the gradients are first copied from another buffer, on the"
          + " device, and then reduced in place; the time is that of both.",
      "",
      "A time is the median of 5 rounds; that of a round is the mean over the ranks. In a"
          + " round the calls follow one another without waiting in between. It is taken by the"
          + " GPU's clock where the gradients are on a GPU, by the CPU's otherwise.",
      ""
    })
public class AllReducePerf extends Example {
  private static final int ROUNDS = 5;
  private static final String ALL = "all";

  /** Before the JIT compiler has optimized a reducer, small sizes measure the compiler. */
  private static final int FIRST_CALLS = 5_000;

  private static final int FIRST_ELEMENTS = 256;

  /** The reducers that only enqueue. The others wait on the host, and a graph cannot hold that. */
  private static final Set<String> CAPTURABLE = Set.of("peer");

  @Option(
      names = {"-b", "--minbytes"},
      paramLabel = "BYTES",
      defaultValue = "1K",
      converter = ByteCount.class,
      description = "The smallest size; 1K is 1024 (default: ${DEFAULT-VALUE}).")
  private long minBytes;

  @Option(
      names = {"-e", "--maxbytes"},
      paramLabel = "BYTES",
      defaultValue = "4M",
      converter = ByteCount.class,
      description = "The largest size (default: ${DEFAULT-VALUE}).")
  private long maxBytes;

  @Option(
      names = {"-f", "--stepfactor"},
      paramLabel = "F",
      defaultValue = "4",
      description = "From one size to the next (default: ${DEFAULT-VALUE}).")
  private int factor;

  @Option(
      names = {"-t", "--type"},
      paramLabel = "TYPE",
      defaultValue = "FLOAT32",
      description = "${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private DataType type;

  @Option(
      names = {"-o", "--op"},
      paramLabel = "OP",
      defaultValue = "AVERAGE",
      description = "${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private ReduceOp op;

  @Option(
      names = "--reducer",
      paramLabel = "NAME",
      description =
          "The reducer to measure, instead of the fastest; all: one table for each that can be used"
              + " here.")
  private String reducer;

  @Option(
      names = {"-n", "--iters"},
      paramLabel = "N",
      description = "Calls in a round (default: 200 up to 1M, 40 up to 64M, 10 above).")
  private Integer iterations;

  @Option(
      names = {"-w", "--warmup"},
      paramLabel = "N",
      defaultValue = "5",
      description =
          "Calls of each size before its first round (default: ${DEFAULT-VALUE}), beside "
              + FIRST_CALLS
              + " small ones for the JIT compiler.")
  private int warmUps;

  @Option(
      names = "--in-place",
      description = "Leave out what is out-of-place, which also needs half the memory.")
  private boolean inPlaceOnly;

  @Option(
      names = "--graph",
      description =
          "Capture ten calls into a CUDA graph and launch that; the time is that of one call."
              + " For reducers on GPUs that never wait on the host: peer.")
  private boolean asGraph;

  @Option(
      names = "--wire",
      paramLabel = "TYPE",
      description = "Let FLOAT32 gradients travel as BFLOAT16 or FLOAT16.")
  private DataType wire;

  @Option(
      names = "--beside",
      description =
          "Take only a part of a GPU, as averaging does during a backward pass. With --host, and"
              + " without --graph, calls in place then go to two streams by turns, as those of"
              + " gradient buckets do.")
  private boolean beside;

  @Option(
      names = "--check",
      description =
          "Compare every element on every rank, bit by bit; #wrong is the sum over ranks.")
  private boolean check;

  @Option(
      names = "--host",
      description =
          "Also print what a call costs the thread that makes it: CPU time, time, and bytes of Java"
              + " objects. On a GPU that is the cost of enqueueing, if the reducer does not wait.")
  private boolean hostCost;

  @Option(names = "--json", paramLabel = "FILE", description = "Write all rounds there as JSON.")
  private Path json;

  @Option(
      names = "--plot",
      paramLabel = "FILE.svg",
      description = "Draw busbw and time over size there.")
  private Path plot;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new AllReducePerf(), args);
  }

  @Override
  void checkOptions() {
    requireAtLeast(type.sizeInBytes(), "-b", minBytes);
    if (maxBytes < minBytes) {
      throw badUse("-e must not be less than -b: -b " + minBytes + ", -e " + maxBytes);
    }
    requireAtLeast(2, "-f", factor);
    if (iterations != null) {
      requireAtLeast(1, "-n", iterations);
    }
    requireAtLeast(1, "-w", warmUps);
    try {
      op.requireDefinedFor(type);
    } catch (IllegalArgumentException e) {
      throw badUse(e.getMessage());
    }
    if (asGraph && onHost()) {
      throw badUse("--graph needs GPUs and --device host refuses them");
    }
    if (asGraph && reducer != null && !reducer.equals(ALL) && !CAPTURABLE.contains(reducer)) {
      throw badUse(cannotBeCaptured(reducer));
    }
    if (wire != null && (type != DataType.FLOAT32 || wire.sizeInBytes() != Short.BYTES)) {
      throw badUse(
          "--wire takes BFLOAT16 or FLOAT16, for FLOAT32 gradients: --wire "
              + wire
              + ", --type "
              + type);
    }
    requireSvg("--plot", plot);
    requireDifferentFiles(json, plot);
  }

  private static String cannotBeCaptured(String name) {
    return "reducer cannot be captured into a CUDA graph, because it waits on the host: reducer="
        + name
        + ", capturable="
        + String.join(", ", CAPTURABLE);
  }

  @Override
  Set<String> ownOptions() {
    return Set.of("--json", "--plot"); // only rank 0 writes them
  }

  @Override
  void configure(GradientSync.Builder builder) {
    if (reducer != null && !reducer.equals(ALL)) {
      builder.reducer(reducer);
    }
    if (wire != null) {
      builder.set("wire", wire.name());
    }
  }

  @Override
  int run(GradientSync sync) {
    if (!everywhere(sync, sync.rank() != 0 || canWrite(json) && canWrite(plot))) {
      return BAD_USE;
    }
    printHeader(sync);
    List<PerfResult> results = new ArrayList<>();
    if (ALL.equals(reducer)) {
      for (String name : reducers()) {
        measureIfAvailable(sync, name, results);
      }
    } else if (asGraph && !CAPTURABLE.contains(sync.reducer())) {
      complain(sync, cannotBeCaptured(sync.reducer()));
      return CANNOT_RUN;
    } else {
      measure(sync, results);
    }
    if (results.isEmpty()) {
      complain(sync, "no reducer could be measured");
      return CANNOT_RUN;
    }
    if (!everywhere(sync, sync.rank() != 0 || write(sync, results))) {
      return CANNOT_RUN;
    }
    boolean wrong = results.stream().anyMatch(r -> r.wrong() != null && r.wrong() > 0);
    return wrong ? WRONG : RIGHT;
  }

  private static List<String> reducers() {
    List<ReducerProvider> providers = new ArrayList<>();
    ServiceLoader.load(ReducerProvider.class).forEach(providers::add);
    providers.sort(Comparator.comparingInt(ReducerProvider::priority).reversed());
    return providers.stream().map(ReducerProvider::name).toList();
  }

  private void measureIfAvailable(GradientSync sync, String name, List<PerfResult> results) {
    if (asGraph && !CAPTURABLE.contains(name)) {
      skip(sync, cannotBeCaptured(name));
      return;
    }
    GradientSync one;
    try {
      one = configured(GradientSync.builder()).reducer(name).create();
    } catch (UnavailableException e) { // all ranks agreed on it
      skip(sync, e.getMessage().replaceAll("\\s*\\R\\s*", " "));
      return;
    }
    try (one) {
      measure(one, results);
    }
  }

  private void skip(GradientSync sync, String reason) {
    print(sync, "#");
    print(sync, "# Skipped: %s", reason);
  }

  private void measure(GradientSync sync, List<PerfResult> results) {
    print(sync, "#");
    print(sync, "# Reducer: %s", sync.reducer());
    if (hostCost && beside && !asGraph) {
      print(sync, "# host: calls in place go to two queues by turns, streams on a GPU");
    }
    PerfTable.header().forEach(line -> print(sync, "%s", line));
    List<PerfResult> own = new ArrayList<>();
    stage(sync, "warming up the JVM with " + sync.reducer());
    try (PerfCase first = prepare(sync, FIRST_ELEMENTS, inPlaceOnly)) {
      first.warmUp(FIRST_CALLS);
    }
    long bytes = minBytes;
    while (bytes <= maxBytes) {
      PerfResult outOfPlace = inPlaceOnly ? null : measure(sync, bytes, false);
      PerfResult inPlace = measure(sync, bytes, true);
      print(sync, "%s", PerfTable.row(type, op, outOfPlace, inPlace));
      for (PerfResult result : inPlaceOnly ? List.of(inPlace) : List.of(outOfPlace, inPlace)) {
        printHostCost(sync, result);
        own.add(result);
      }
      bytes = bytes > maxBytes / factor ? Long.MAX_VALUE : bytes * factor;
    }
    PerfTable.footer(own).forEach(line -> print(sync, "%s", line));
    results.addAll(own);
  }

  private PerfResult measure(GradientSync sync, long bytes, boolean inPlace) {
    long count = bytes / type.sizeInBytes();
    int times = iterations(bytes);
    String size =
        bytes + " bytes " + (inPlace ? "in-place" : "out-of-place") + " by " + sync.reducer();
    stage(sync, size + ", filling the buffers");
    try (PerfCase measured = prepare(sync, count, inPlace)) {
      stage(sync, size + ", warming up");
      measured.warmUp(warmUps);
      if (asGraph) {
        measured.capture();
      }
      List<Double> rounds = new ArrayList<>();
      for (int round = 1; round <= ROUNDS; round++) {
        stage(sync, size + ", round " + round + " of " + ROUNDS);
        rounds.add(measured.round(times));
      }
      HostCost host = hostCost ? measured.hostCost(times) : null;
      Long wrong = null;
      if (check) {
        stage(sync, size + ", checking");
        wrong = measured.wrong();
      }
      return new PerfResult(
          sync.reducer(),
          inPlace,
          count * type.sizeInBytes(),
          count,
          sync.size(),
          List.copyOf(rounds),
          wrong,
          host);
    }
  }

  /** Prepares what to measure. */
  PerfCase prepare(GradientSync sync, long count, boolean inPlace) {
    return new PerfCase(sync, type, op, wire, count, inPlace, beside);
  }

  private int iterations(long bytes) {
    if (iterations != null) {
      return iterations;
    }
    return bytes <= 1 << 20 ? 200 : bytes <= 64 << 20 ? 40 : 10;
  }

  private void printHeader(GradientSync sync) {
    print(
        sync,
        "# allreduce-perf nRanks %d launcher %s minBytes %d maxBytes %d step: %d(factor)"
            + " warmup iters: %d iters: %s rounds: %d validation: %d graph: %d",
        sync.size(),
        sync.launcher(),
        minBytes,
        maxBytes,
        factor,
        warmUps,
        iterations == null ? "by size" : iterations,
        ROUNDS,
        check ? 1 : 0,
        asGraph ? PerfCase.IN_GRAPH : 0);
    print(sync, "#");
    print(sync, "# Using devices");
    String place =
        sync.device() instanceof CudaDevice gpu
            ? "device " + gpu.ordinal() + " [" + gpu.pciAddress() + "] "
            : "device ";
    String line =
        String.format(
            "#  Rank %2d Pid %6d on %s %s%s",
            sync.rank(),
            ProcessHandle.current().pid(),
            HostName.get(),
            place,
            sync.device().name());
    gatherLines(sync, line).forEach(one -> print(sync, "%s", one));
  }

  private void printHostCost(GradientSync sync, PerfResult result) {
    HostCost host = result.host();
    if (host != null) {
      print(
          sync,
          "# host: size=%d %s cpu=%.2f us, wall=%.2f us, allocated=%.1f bytes per call",
          result.bytes(),
          result.placement(),
          host.cpuNanos() / 1e3,
          host.wallNanos() / 1e3,
          host.bytes());
    }
  }

  private boolean write(GradientSync sync, List<PerfResult> results) {
    return write(
        "the results: " + names(json, plot),
        plot,
        () -> {
          if (json != null) {
            NewFile.write(json, PerfJson.of(about(sync), results));
          }
          if (plot != null) {
            String title = type + " " + op + ", " + sync.size() + " ranks, " + sync.device().name();
            PerfPlot.write(plot, title, results);
          }
        });
  }

  private Map<String, Object> about(GradientSync sync) {
    Map<String, Object> about = new LinkedHashMap<>();
    about.put("program", "allreduce-perf");
    about.put("date", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    about.put("ranks", sync.size());
    about.put("launcher", sync.launcher());
    about.put("device", sync.device().name());
    about.put("java", System.getProperty("java.version"));
    about.put("graph", asGraph);
    about.put("type", type.name());
    about.put("op", op.name());
    about.put("wire", wire == null ? type.name() : wire.name());
    about.put("beside", beside);
    return about;
  }
}

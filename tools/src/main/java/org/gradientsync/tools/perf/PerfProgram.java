package org.gradientsync.tools.perf;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.tools.program.ByteCount;
import org.gradientsync.tools.program.HostName;
import org.gradientsync.tools.program.NewFile;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Option;

/** A program that times collectives of growing size, and prints them like NVIDIA's nccl-tests. */
abstract class PerfProgram extends RankedProgram {
  static final String ALL = "all";

  private static final int ROUNDS = 5;

  /** The reducers that only enqueue. The others wait on the host, and a graph cannot hold that. */
  private static final Set<String> CAPTURABLE = Set.of("peer");

  /** Before the JIT compiler has optimized a reducer, small sizes measure the compiler. */
  static final int FIRST_CALLS = 20_000;

  private static final long FIRST_NANOS = 1_000_000_000; // about

  private static final int FIRST_BYTES = 1024;

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
  DataType type;

  @Option(
      names = {"-o", "--op"},
      paramLabel = "OP",
      defaultValue = "AVERAGE",
      description = "${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  ReduceOp op;

  @Option(
      names = "--reducer",
      paramLabel = "NAME",
      description =
          "The reducer to measure, instead of the fastest; all: one table for each that can be used"
              + " here.")
  String reducer;

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
              + " small ones, or a second of these, for the JIT compiler; 0 for a single call.")
  private int warmUps;

  @Option(
      names = "--in-place",
      description =
          "Leave out what is out-of-place, which also needs more memory, except where there is"
              + " nothing else.")
  boolean inPlaceOnly;

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
  boolean hostCost;

  @Option(
      names = "--graph",
      description =
          "Capture ten calls into a CUDA graph and launch that; the time is that of one call."
              + " For reducers on GPUs that never wait on the host: peer.")
  boolean asGraph;

  @Option(names = "--json", paramLabel = "FILE", description = "Write all rounds there as JSON.")
  private Path json;

  @Option(
      names = "--plot",
      paramLabel = "FILE.svg",
      description = "Draw busbw and time over size there.")
  private Path plot;

  @Option(
      names = "--rivals",
      paramLabel = "FILE",
      arity = "1..*",
      description =
          "Add what script/measure/compare measured of others, in these files, to --json and"
              + " --plot: what was measured with as many ranks.")
  private List<Path> rivalFiles = List.of();

  /** Returns what to measure, in this order. */
  abstract List<PerfCollective> collectives();

  /** Returns what all cases have in common. */
  TimedCase.Setup setup() {
    return new TimedCase.Setup(type, op, null, false, asGraph);
  }

  /** Prepares one collective at one size, of {@link PerfCollective#count} elements. */
  TimedCase prepare(GradientSync sync, PerfCollective collective, long count, boolean inPlace) {
    return new TimedCase(sync, collective, setup(), count, inPlace);
  }

  /** Returns the title of the plot, to which the ranks are added. */
  abstract String title();

  /** Returns the name of the measurement in tables and JSON. */
  abstract String program();

  /** Returns the line of the plot to which a result of one or several reducers belongs, or null. */
  abstract String line(PerfResult result, boolean several);

  private static String refusal(boolean asGraph, String name) {
    return !asGraph || CAPTURABLE.contains(name)
        ? null
        : "reducer cannot be captured into a CUDA graph, because it waits on the host: reducer="
            + name
            + ", capturable="
            + String.join(", ", CAPTURABLE);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(type.sizeInBytes(), "-b", minBytes);
    if (maxBytes < minBytes) {
      throw badUse("-e must not be less than -b: -b " + minBytes + ", -e " + maxBytes);
    }
    requireAtLeast(2, "-f", factor);
    if (iterations != null) {
      requireAtLeast(1, "-n", iterations);
    }
    requireAtLeast(0, "-w", warmUps);
    if (collectives().stream().anyMatch(PerfCollective::reduces)) {
      try {
        op.requireDefinedFor(type);
      } catch (IllegalArgumentException e) {
        throw badUse(e.getMessage());
      }
    }
    if (asGraph && onHost()) {
      throw badUse("--graph needs GPUs and --device host refuses them");
    }
    if (reducer != null && !reducer.equals(ALL) && refusal(asGraph, reducer) != null) {
      throw badUse(refusal(asGraph, reducer));
    }
    if (!rivalFiles.isEmpty() && json == null && plot == null) {
      throw badUse("--rivals adds to --json or --plot, and neither is given");
    }
    requireSvg("--plot", plot);
    requireDifferentFiles(json, plot);
  }

  @Override
  public Set<String> ownOptions() {
    return Set.of("--json", "--plot", "--rivals"); // only rank 0 writes and reads them
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    if (reducer != null && !reducer.equals(ALL)) {
      builder.reducer(reducer);
    }
  }

  @Override
  public int run(GradientSync sync) {
    if (!everywhere(sync, sync.rank() != 0 || canWrite(json) && canWrite(plot))) {
      return BAD_USE;
    }
    List<PerfResult> rivals = new ArrayList<>();
    if (!everywhere(sync, sync.rank() != 0 || readRivals(sync.size(), rivals))) {
      return BAD_USE;
    }
    printHeader(sync);
    List<PerfResult> results = new ArrayList<>();
    if (ALL.equals(reducer)) {
      measureIfAvailable(sync, sync.reducer(), results);
      for (String name : sync.alternatives().keySet()) {
        measureIfAvailable(sync, name, results);
      }
    } else if (refusal(asGraph, sync.reducer()) != null) {
      complain(sync, refusal(asGraph, sync.reducer()));
      return CANNOT_RUN;
    } else {
      measure(sync, results);
    }
    if (results.isEmpty()) {
      complain(sync, "nothing could be measured");
      return CANNOT_RUN;
    }
    if (!everywhere(sync, sync.rank() != 0 || write(sync, results, rivals))) {
      return CANNOT_RUN;
    }
    boolean wrong = results.stream().anyMatch(r -> r.wrong() != null && r.wrong() > 0);
    return wrong ? WRONG : RIGHT;
  }

  /** Adds those of the measured collectives. If a file cannot be read, prints why. */
  private boolean readRivals(int ranks, List<PerfResult> rivals) {
    try {
      for (Path file : rivalFiles) {
        rivals.addAll(Rivals.read(file));
      }
    } catch (IOException e) {
      printError("cannot read the rivals: %s", e.getMessage());
      return false;
    }
    rivals.removeIf(each -> each.ranks() != ranks || !collectives().contains(each.collective()));
    return true;
  }

  private void measureIfAvailable(GradientSync sync, String name, List<PerfResult> results) {
    String refusal = refusal(asGraph, name);
    if (refusal != null) {
      skip(sync, refusal);
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
    for (PerfCollective collective : collectives()) {
      if (sync.size() < collective.fewestRanks()) {
        skip(sync, collective + " takes " + collective.fewestRanks() + " ranks or more");
      } else if (asGraph && !collective.capturable()) {
        skip(sync, collective + " cannot be captured into a CUDA graph: its hosts meet");
      } else {
        measure(sync, collective, results);
      }
    }
  }

  /** Prints what to know about a table, before it. */
  void printNotes(GradientSync sync, PerfCollective collective) {
    // by default there is nothing to know
  }

  private void measure(GradientSync sync, PerfCollective collective, List<PerfResult> results) {
    printNotes(sync, collective);
    PerfTable.header().forEach(line -> print(sync, "%s", line));
    boolean inPlace = collective.hasInPlace();
    boolean outOfPlace = !inPlaceOnly || !inPlace;
    List<PerfResult> own = new ArrayList<>();
    if (warmUps > 0) {
      stage(sync, "warming up the JVM with " + sync.reducer());
      long few = collective.count(FIRST_BYTES, type, sync.size());
      try (TimedCase first = prepare(sync, collective, few, !outOfPlace)) {
        long start = System.nanoTime();
        double nanos = 0;
        for (int made = 0; made < FIRST_CALLS && nanos < FIRST_NANOS; made += FIRST_CALLS / 20) {
          first.warmUp(FIRST_CALLS / 20);
          nanos = sync.communicator().max(System.nanoTime() - start); // the same on all ranks
        }
      }
    }
    long bytes = minBytes;
    while (bytes <= maxBytes) {
      PerfResult moved = outOfPlace ? measure(sync, collective, bytes, false) : null;
      PerfResult kept = inPlace ? measure(sync, collective, bytes, true) : null;
      print(sync, "%s", PerfTable.row(type, op, moved, kept));
      Stream.of(moved, kept)
          .filter(Objects::nonNull)
          .forEach(
              result -> {
                PerfTable.hostCost(result).ifPresent(line -> print(sync, "%s", line));
                own.add(result);
              });
      bytes = bytes > maxBytes / factor ? Long.MAX_VALUE : bytes * factor;
    }
    PerfTable.footer(own).forEach(line -> print(sync, "%s", line));
    results.addAll(own);
  }

  private PerfResult measure(
      GradientSync sync, PerfCollective collective, long bytes, boolean inPlace) {
    long count = collective.count(bytes, type, sync.size());
    int times = iterations(bytes);
    String place = inPlace ? " in-place" : " out-of-place";
    String size = bytes + " bytes, " + collective + place + " by " + sync.reducer();
    stage(sync, size + ", filling the buffers");
    try (TimedCase measured = prepare(sync, collective, count, inPlace)) {
      stage(sync, size + ", warming up");
      measured.warmUp(Math.max(1, warmUps)); // the first one prepares the buffers
      measured.capture();
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
          collective,
          sync.reducer(),
          inPlace,
          count * collective.parts(sync.size()) * type.sizeInBytes(),
          count,
          sync.size(),
          List.copyOf(rounds),
          wrong,
          host);
    }
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
        "# %s nRanks %d launcher %s minBytes %d maxBytes %d step: %d(factor)"
            + " warmup iters: %d iters: %s rounds: %d validation: %d graph: %d",
        program(),
        sync.size(),
        sync.launcher(),
        minBytes,
        maxBytes,
        factor,
        warmUps,
        iterations == null ? "by size" : iterations,
        ROUNDS,
        check ? 1 : 0,
        asGraph ? TimedCase.IN_GRAPH : 0);
    print(sync, "#");
    print(sync, "# Using devices");
    String gpu =
        sync.device() instanceof CudaDevice d ? d.ordinal() + " [" + d.pciAddress() + "] " : "";
    String line =
        String.format(
            Locale.ROOT,
            "#  Rank %2d Pid %6d on %s device %s%s",
            sync.rank(),
            ProcessHandle.current().pid(),
            HostName.get(),
            gpu,
            sync.device().name());
    gatherTexts(sync, line).forEach(one -> print(sync, "%s", one));
  }

  private boolean write(GradientSync sync, List<PerfResult> results, List<PerfResult> rivals) {
    return write(
        "the results: " + names(json, plot),
        plot,
        () -> {
          if (json != null) {
            NewFile.write(json, PerfJson.of(about(sync), results, rivals));
          }
          if (plot != null) {
            String title = title() + ", " + sync.size() + " ranks, " + sync.device().name();
            PerfPlot.write(plot, title, PerfPlot.lines(this::line, results, rivals));
          }
        });
  }

  /** Returns what holds for all results. */
  Map<String, Object> about(GradientSync sync) {
    Map<String, Object> about = new LinkedHashMap<>();
    about.put("program", program());
    about.put("date", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    about.put("ranks", sync.size());
    about.put("launcher", sync.launcher());
    about.put("device", sync.device().name());
    about.put("java", System.getProperty("java.version"));
    about.put("type", type.name());
    about.put("op", op.name());
    about.put("graph", asGraph);
    return about;
  }
}

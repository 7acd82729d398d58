package org.gradientsync.examples;

import java.io.IOException;
import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Data-parallel training of a multi-layer perceptron, with gradients in buckets. */
@Command(
    name = "train-mlp",
    description = {
      "Trains a multi-layer perceptron on all ranks, which average their gradients in buckets during"
          + " the backward pass.",
      "",
      "Layers are matrix products with ReLU, without bias; the loss is the mean squared error; steps"
          + " are those of plain gradient descent. On the CPU it computes in float64. N ranks with B"
          + " rows each see the same rows as one rank with N * B rows.",
      ""
    })
public class TrainMlp extends Example {
  private static final int DEFAULT_WARM_UP = 5;
  private static final int MOST_ALONE = 100;
  private static final int MOST_IN_TIMELINE = 1000;
  private static final double MEBIBYTE = 1 << 20;
  private static final long BAR_PAUSE = TimeUnit.MILLISECONDS.toNanos(250);

  @Mixin private MlpModel model;

  @Option(
      names = "--rows",
      paramLabel = "N",
      defaultValue = "64",
      description = "Rows of a batch on each rank (default: ${DEFAULT-VALUE}).")
  private int rows;

  @Option(
      names = "--batches",
      paramLabel = "N",
      defaultValue = "8",
      description =
          "Batches that are made at the start and used in turn (default: ${DEFAULT-VALUE}).")
  private int batches;

  @Option(
      names = "--steps",
      paramLabel = "N",
      defaultValue = "200",
      description =
          "Steps of gradient descent, those before a checkpoint included (default:"
              + " ${DEFAULT-VALUE}).")
  private int steps;

  @Option(
      names = "--accumulate",
      paramLabel = "K",
      defaultValue = "1",
      description = "Batches of a step, whose gradients are added up (default: ${DEFAULT-VALUE}).")
  private int accumulate;

  @Option(
      names = "--rate",
      paramLabel = "R",
      defaultValue = "0.2",
      description = "Learning rate (default: ${DEFAULT-VALUE}).")
  private double rate;

  @Option(
      names = "--seed",
      paramLabel = "N",
      defaultValue = "1",
      description = "Of the data and the first weights (default: ${DEFAULT-VALUE}).")
  private long seed;

  @Option(
      names = "--bucket-mb",
      paramLabel = "MIB",
      description = "When a bucket is full, in MiB (default: 25).")
  private Double bucketMb;

  @Option(
      names = "--first-bucket-mb",
      paramLabel = "MIB",
      description = "When the first bucket is full, in MiB (default: 1).")
  private Double firstBucketMb;

  @Option(
      names = "--overlap",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "Average during the backward pass, or all at its end (default: during).")
  private boolean overlap;

  @Option(
      names = "--wire",
      paramLabel = "TYPE",
      description =
          "On GPUs, bfloat16 or float16: send gradients in this type (default: that of the"
              + " gradients).")
  private String wire;

  @Option(
      names = "--tf32",
      negatable = true,
      description = "On GPUs, multiply in TF32 instead of float32 (default: float32).")
  private boolean tf32;

  @Option(
      names = "--graphs",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description =
          "On GPUs, enqueue the passes of a layer as CUDA graphs, which costs the host less"
              + " (default: do).")
  private boolean graphs;

  @Option(
      names = "--loss-every",
      paramLabel = "N",
      defaultValue = "10",
      description =
          "Steps from one reading of the loss, which waits for all ranks, to the next (default:"
              + " ${DEFAULT-VALUE}).")
  private int lossEvery;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description = "Steps before the clock starts (default: 5, fewer if there are few steps).")
  private Integer warmUp;

  @Option(
      names = "--alone",
      description =
          "At the end, also time steps without averaging, at most "
              + MOST_ALONE
              + ", to tell the efficiency.")
  private boolean alone;

  @Option(
      names = "--exposed",
      description =
          "Also tell how much of the averaging is not hidden by the backward pass. Observing costs a"
              + " little.")
  private boolean exposed;

  @Option(
      names = "--timeline",
      paramLabel = "FILE",
      description =
          "Write what each rank computes and averages in the last steps, for chrome://tracing or"
              + " Perfetto; implies --exposed.")
  private Path timeline;

  @Option(names = "--timeline-plot", paramLabel = "FILE.svg", description = "Draw the same there.")
  private Path timelinePlot;

  @Option(
      names = "--timeline-steps",
      paramLabel = "N",
      defaultValue = "5",
      description = "How many steps a timeline shows (default: ${DEFAULT-VALUE}).")
  private int timelineSteps;

  @Option(
      names = "--checkpoint",
      paramLabel = "FILE",
      description = "Write the weights there at the end.")
  private Path checkpoint;

  @Option(
      names = "--checkpoint-every",
      paramLabel = "N",
      description = "Also write them each time when this many steps are done.")
  private Integer checkpointEvery;

  @Option(
      names = "--resume",
      paramLabel = "FILE",
      description =
          "Go on where a checkpoint was written; rank 0 reads it. It holds weights and steps: give"
              + " the same --data and --seed.")
  private Path resume;

  @Option(names = "--json", paramLabel = "FILE", description = "Write the results there as JSON.")
  private Path json;

  @Option(names = "--plot", paramLabel = "FILE.svg", description = "Draw the loss there.")
  private Path plot;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new TrainMlp(), args);
  }

  @Override
  void checkOptions() {
    requireAtLeast(1, "--rows", rows);
    model.check(this, rows);
    requireAtLeast(1, "--batches", batches);
    requireAtLeast(1, "--steps", steps);
    requireAtLeast(1, "--accumulate", accumulate);
    requireAtLeast(1, "--loss-every", lossEvery);
    requirePositive("--rate", rate);
    requirePositive("--bucket-mb", bucketMb);
    requirePositive("--first-bucket-mb", firstBucketMb);
    if (warmUp != null) {
      requireAtLeast(0, "--warmup", warmUp);
      requireAtMost(steps - 1, "--warmup", warmUp);
    }
    if (wire != null && !wire.matches("(?i)b?float16")) {
      throw badUse("--wire takes bfloat16 or float16: --wire " + wire);
    }
    if (checkpointEvery != null) {
      requireAtLeast(1, "--checkpoint-every", checkpointEvery);
      if (checkpoint == null) {
        throw badUse("--checkpoint-every needs --checkpoint FILE");
      }
    }
    requireSvg("--plot", plot);
    requireSvg("--timeline-plot", timelinePlot);
    requireDifferentFiles(json, plot, checkpoint, timeline, timelinePlot);
    requireAtLeast(1, "--timeline-steps", timelineSteps);
    requireAtMost(MOST_IN_TIMELINE, "--timeline-steps", timelineSteps);
  }

  private void requirePositive(String option, Double value) {
    if (value != null && !(value > 0 && value <= Integer.MAX_VALUE)) {
      throw badUse(
          option
              + " must be more than 0, and "
              + Integer.MAX_VALUE
              + " or less: "
              + option
              + " "
              + value);
    }
  }

  @Override
  Set<String> ownOptions() {
    return Set.of("--json", "--plot", "--resume"); // of rank 0 alone
  }

  @Override
  void configure(GradientSync.Builder builder) {
    if (wire != null) {
      builder.set("wire", wire.toLowerCase(Locale.ROOT));
    }
  }

  @Override
  int run(GradientSync sync) {
    if (!everywhere(
        sync,
        sync.rank() != 0
            || canWrite(json)
                && canWrite(plot)
                && canReplace(checkpoint)
                && canWrite(timeline)
                && canWrite(timelinePlot))) {
      return BAD_USE;
    }
    if (wire != null && !(sync.device() instanceof CudaDevice)) {
      complain(sync, "--wire is for float32 gradients, and those computed on CPUs are float64");
      return BAD_USE;
    }
    try (MlpEngine engine = engine(sync, model.widths());
        Timeline times = timeline(sync, engine);
        GradientBuckets buckets = buckets(sync, engine.parameters())) {
      return train(sync, times == null ? engine : times.engine(), buckets, times);
    }
  }

  /** What takes the times of the last steps, or null. */
  private Timeline timeline(GradientSync sync, MlpEngine engine) {
    return timeline == null && timelinePlot == null
        ? null
        : new Timeline(sync, engine, Math.min(steps, timelineSteps), accumulate);
  }

  /** The layers on this rank's device. */
  MlpEngine engine(GradientSync sync, int[] shape) {
    if (sync.device() instanceof CudaDevice gpu) {
      GpuMlp engine = new GpuMlp(gpu, shape, rows, tf32);
      if (graphs) {
        engine.useGraphs();
      }
      return engine;
    }
    return new HostMlp(sync, shape, rows);
  }

  private GradientBuckets buckets(GradientSync sync, List<Parameter> parameters) {
    GradientBuckets.Builder builder = GradientBuckets.builder(sync, parameters).overlap(overlap);
    if (bucketMb != null) {
      builder.bucketBytes((long) Math.ceil(bucketMb * MEBIBYTE));
    }
    if (firstBucketMb != null) {
      builder.firstBucketBytes((long) Math.ceil(firstBucketMb * MEBIBYTE));
    }
    return builder.build();
  }

  private int train(GradientSync sync, MlpEngine engine, GradientBuckets buckets, Timeline times) {
    int[] shape = model.widths();
    stage(sync, "making the data");
    MlpData data = model.data(seed);
    long first = start(sync, engine.weights(), shape);
    if (first < 0) {
      return CANNOT_RUN;
    }
    if (first >= steps) {
      complain(sync, "nothing is left to do: --steps " + steps + ", steps done=" + first);
      return BAD_USE;
    }
    buckets.broadcast(engine.weights(), 0);
    MlpTrainer.load(sync, engine, data, batches, rows, shape);
    printHeader(sync, engine.parameters(), buckets, first);

    MlpTrainer trainer = new MlpTrainer(sync, engine, buckets, batches, accumulate, rate);
    Exposure exposure = exposed || times != null ? new Exposure() : null;
    Clock clock = new Clock(first + warmUpSteps(first), exposure, times);
    List<MlpTrainer.Loss> losses = new ArrayList<>();
    if (!steps(sync, trainer, clock, first, engine.weights(), losses)) {
      return CANNOT_RUN;
    }
    Map<String, Object> results = results(sync, clock);
    boolean same = sameWeights(sync, engine.weights(), results);
    boolean finite = everywhere(sync, Weights.areFinite(engine.weights()));
    double loss = losses.get(losses.size() - 1).loss();
    finite &= Double.isFinite(loss);
    results.put("loss", loss);
    if (data instanceof IrisData iris) {
      Layer[] layers = HostMlp.layers(shape);
      double[][] weights = engine.weights().stream().map(Weights::get).toArray(double[][]::new);
      results.put("trainingAccuracy", iris.accuracy(layers, weights, false));
      results.put("testAccuracy", iris.accuracy(layers, weights, true));
    }
    List<TimelineEvent> events = List.of();
    if (exposure != null) {
      hearOfAll(sync);
      exposure.putInto(results, sync, clock.timed);
      events = times == null ? events : times.gather();
    }
    if (alone) {
      timeAlone(sync, trainer, clock, results);
    }
    printResults(sync, results);
    if (first == 0 && losses.size() > 1 && loss >= losses.get(0).loss()) {
      print(sync, "The loss has not gone down: try another --rate.");
    }
    if (!everywhere(sync, sync.rank() != 0 || write(sync, results, losses))
        || !everywhere(sync, sync.rank() != 0 || writeTimeline(sync, events))) {
      return CANNOT_RUN;
    }
    return printVerdict(sync, same, finite);
  }

  /**
   * Sets the first weights on rank 0. Collective.
   *
   * @return the steps that are done already, or -1 if they could not be read
   */
  private long start(GradientSync sync, List<DeviceBuffer> weights, int[] shape) {
    long[] done = {0};
    if (sync.rank() == 0 && resume != null) {
      done[0] = readCheckpoint(weights, shape);
    } else if (sync.rank() == 0) {
      Layer[] layers = HostMlp.layers(shape);
      for (int i = 0; i < layers.length; i++) {
        Weights.set(weights.get(i), Weights.start(seed, i, layers));
      }
    }
    sync.communicator().broadcast(LongBuffer.wrap(done), 0);
    return done[0];
  }

  private long readCheckpoint(List<DeviceBuffer> weights, int[] shape) {
    try {
      return Checkpoint.read(resume, shape, weights);
    } catch (IOException e) {
      printError("cannot resume: %s", reason(e));
      return -1;
    }
  }

  private int warmUpSteps(long first) {
    int left = (int) (steps - 1 - first);
    return Math.min(left, warmUp == null ? DEFAULT_WARM_UP : warmUp);
  }

  /** An average is told of at a later call when it is done; this is one. */
  private static void hearOfAll(GradientSync sync) {
    try (DeviceBuffer one = sync.allocate(DataType.FLOAT32, 1)) {
      sync.average(one);
    }
  }

  /** Times the steps from one on. */
  private static final class Clock {
    private final long firstStep;
    private final Exposure exposure; // or null
    private final Timeline timeline; // or null
    private long timed;
    private long start;
    private long nanos;

    Clock(long firstStep, Exposure exposure, Timeline timeline) {
      this.firstStep = firstStep;
      this.exposure = exposure;
      this.timeline = timeline;
    }

    void start() {
      start = System.nanoTime();
    }

    void stop() {
      nanos += System.nanoTime() - start;
    }
  }

  /** Trains. Collective. */
  private boolean steps(
      GradientSync sync,
      MlpTrainer trainer,
      Clock clock,
      long first,
      List<DeviceBuffer> weights,
      List<MlpTrainer.Loss> losses) {
    long shown = System.nanoTime();
    long shownStep = first;
    for (long step = first; step < steps; step++) {
      if (clock.timeline != null && step == Math.max(first, steps - clock.timeline.steps())) {
        startTimeline(sync, trainer, clock, step);
      }
      if (step == clock.firstStep) {
        trainer.await();
        if (clock.exposure != null) {
          clock.exposure.start(sync);
        }
        sync.barrier();
        clock.start();
      }
      boolean last = step == steps - 1;
      boolean read = last || step % lossEvery == 0;
      trainer.step(step, read);
      if (read) {
        losses.add(new MlpTrainer.Loss(step, trainer.loss()));
      }
      if (last) {
        trainer.await();
        clock.stop();
        clock.timed = steps - clock.firstStep;
      }
      if (checkpoint != null && isDue(step + 1, last)) {
        Clock running = step >= clock.firstStep && !last ? clock : null;
        if (!checkpoint(sync, trainer, running, step + 1, weights, losses)) {
          return false;
        }
      }
      long now = System.nanoTime();
      if (sync.rank() == 0 && now - shown >= BAR_PAUSE) {
        double rate = rowsPerStep(sync) * (step + 1 - shownStep) / ((now - shown) / 1e9);
        showBar(step + 1, losses, rate);
        shown = now;
        shownStep = step + 1;
      }
    }
    return true;
  }

  /** The clock stands still meanwhile. Collective. */
  private static void startTimeline(GradientSync sync, MlpTrainer trainer, Clock clock, long step) {
    boolean running = step > clock.firstStep;
    trainer.await();
    if (running) {
      clock.stop();
    }
    clock.timeline.start(step);
    trainer.await();
    sync.barrier();
    if (running) {
      clock.start();
    }
  }

  private void showBar(long done, List<MlpTrainer.Loss> losses, double rowsPerSecond) {
    String loss =
        losses.isEmpty()
            ? ""
            : String.format(Locale.ROOT, "loss %.4g, ", losses.get(losses.size() - 1).loss());
    bar(done, steps, loss + String.format(Locale.ROOT, "%.0f rows/s", rowsPerSecond));
  }

  private boolean isDue(long done, boolean last) {
    return last || checkpointEvery != null && done % checkpointEvery == 0;
  }

  /** Writes a checkpoint on rank 0 while the clock stands still. Collective. */
  private boolean checkpoint(
      GradientSync sync,
      MlpTrainer trainer,
      Clock clock,
      long done,
      List<DeviceBuffer> weights,
      List<MlpTrainer.Loss> losses) {
    if (clock != null) {
      trainer.await();
      clock.stop();
    }
    boolean finite = losses.stream().allMatch(loss -> Double.isFinite(loss.loss()));
    boolean written = everywhere(sync, sync.rank() != 0 || writeCheckpoint(done, weights, finite));
    if (clock != null) {
      clock.start();
    }
    return written;
  }

  private boolean writeCheckpoint(long done, List<DeviceBuffer> weights, boolean finiteLosses) {
    try {
      if (finiteLosses && Weights.areFinite(weights)) {
        Checkpoint.write(checkpoint, model.widths(), done, weights);
      } else { // an earlier one is better
        printError("no checkpoint is written, as the training has diverged: steps done=%d", done);
      }
      return true;
    } catch (IOException e) {
      printError("cannot write the checkpoint: file=%s, error=%s", checkpoint, reason(e));
      return false;
    }
  }

  private double rowsPerStep(GradientSync sync) {
    return (double) rows * accumulate * sync.size();
  }

  /** The slowest rank's time for a step, in milliseconds. Collective. */
  private static double slowest(GradientSync sync, long nanos, long timed) {
    double[] time = {milliseconds(nanos) / timed};
    sync.communicator().allReduce(DoubleBuffer.wrap(time), ReduceOp.MAX);
    return time[0];
  }

  private Map<String, Object> results(GradientSync sync, Clock clock) {
    Map<String, Object> results = new LinkedHashMap<>();
    double time = slowest(sync, clock.nanos, clock.timed);
    results.put("timedSteps", clock.timed);
    results.put("millisecondsPerStep", time);
    results.put("rowsPerSecond", rowsPerStep(sync) / time * 1e3);
    return results;
  }

  /** Whether all ranks have the same weights, bit by bit. Collective. */
  private boolean sameWeights(
      GradientSync sync, List<DeviceBuffer> weights, Map<String, Object> results) {
    long[] own = {Weights.digest(weights)};
    long[] all = new long[sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    results.put("digests", Arrays.stream(all).mapToObj(d -> String.format("%016x", d)).toList());
    return Arrays.stream(all).allMatch(digest -> digest == all[0]);
  }

  /** The weights of the training are lost by it. Collective. */
  private void timeAlone(
      GradientSync sync, MlpTrainer trainer, Clock clock, Map<String, Object> results) {
    stage(sync, "timing steps without averaging");
    long timed = Math.min(clock.timed, MOST_ALONE);
    trainer.stepAlone(0, false);
    trainer.await();
    sync.barrier();
    long start = System.nanoTime();
    for (long step = 0; step < timed; step++) {
      trainer.stepAlone(step, step % lossEvery == 0);
    }
    trainer.await();
    double time = slowest(sync, System.nanoTime() - start, timed);
    results.put("aloneMillisecondsPerStep", time);
    results.put("efficiency", time / (double) results.get("millisecondsPerStep"));
  }

  private void printHeader(
      GradientSync sync, List<Parameter> parameters, GradientBuckets buckets, long first) {
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Reducer: %s, device: %s", sync.reducer(), sync.device().name());
    print(
        sync,
        "Widths: %s, weights: %d of %s, buckets: %d, averaged %s the backward pass",
        model.text(),
        parameters.stream().mapToLong(Parameter::count).sum(),
        parameters.get(0).type(),
        buckets.bucketCount(),
        overlap ? "during" : "after");
    if (resume != null) {
      print(sync, "Resumed: %s, steps done: %d", resume, first);
    }
  }

  private void printResults(GradientSync sync, Map<String, Object> results) {
    print(sync, "Final loss: %.6g", results.get("loss"));
    if (results.containsKey("testAccuracy")) {
      print(sync, "Accuracy in training: %.4f", results.get("trainingAccuracy"));
      print(sync, "Accuracy in testing: %.4f", results.get("testAccuracy"));
    }
    print(sync, "Throughput: %.0f rows/s over all ranks", results.get("rowsPerSecond"));
    print(
        sync,
        "Step: %.3f ms, mean of %d steps, checkpoints left out",
        results.get("millisecondsPerStep"),
        results.get("timedSteps"));
    if (alone) {
      print(
          sync,
          "Step without averaging: %.3f ms, efficiency: %.3f",
          results.get("aloneMillisecondsPerStep"),
          results.get("efficiency"));
    }
    if (results.containsKey("exposedShare")) {
      print(
          sync,
          "Averaging: %.3f ms in a step, %.3f ms of it exposed (%.1f%%), mean over the ranks",
          results.get("averagingMillisecondsPerStep"),
          results.get("exposedMillisecondsPerStep"),
          100 * (double) results.get("exposedShare"));
    }
    print(sync, "Digest of the weights: %s", ((List<?>) results.get("digests")).get(0));
  }

  private boolean write(
      GradientSync sync, Map<String, Object> results, List<MlpTrainer.Loss> losses) {
    return write(
        "the results: " + names(json, plot),
        plot,
        () -> {
          if (json != null) {
            Map<String, Object> all = about(sync);
            all.putAll(results);
            all.put("losses", losses.stream().map(l -> List.of(l.step(), l.loss())).toList());
            Files.writeString(json, PerfJson.of(all));
          }
          if (plot != null) {
            LossPlot.write(plot, title(sync), losses);
          }
        });
  }

  private String title(GradientSync sync) {
    return model.source() + ", widths " + model.text() + ", " + sync.size() + " ranks";
  }

  private boolean writeTimeline(GradientSync sync, List<TimelineEvent> events) {
    return write(
        "the timeline: " + names(timeline, timelinePlot),
        timelinePlot,
        () -> {
          if (timeline != null) {
            Files.writeString(timeline, TimelineJson.of(sync.size(), events));
          }
          if (timelinePlot != null) {
            TimelinePlot.write(timelinePlot, title(sync), sync.size(), events);
          }
        });
  }

  private Map<String, Object> about(GradientSync sync) {
    Map<String, Object> about = new LinkedHashMap<>();
    about.put("program", "train-mlp");
    about.put("date", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    about.put("ranks", sync.size());
    about.put("launcher", sync.launcher());
    about.put("reducer", sync.reducer());
    about.put("device", sync.device().name());
    about.put("java", System.getProperty("java.version"));
    about.put("data", model.source().name());
    about.put("widths", Arrays.stream(model.widths()).boxed().toList());
    about.put("rows", rows);
    about.put("batches", batches);
    about.put("accumulate", accumulate);
    about.put("steps", steps);
    about.put("rate", rate);
    about.put("seed", seed);
    about.put("overlap", overlap);
    about.put("wire", wire);
    about.put("tf32", tf32);
    return about;
  }
}

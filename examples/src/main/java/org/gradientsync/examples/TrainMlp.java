package org.gradientsync.examples;

import java.nio.LongBuffer;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.elastic.ElasticTraining;
import org.gradientsync.hooks.Compression;
import org.gradientsync.tools.program.RankedProgram;
import org.gradientsync.tools.program.Units;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Trains a multi-layer perceptron on several ranks, with gradients in buckets. */
@Command(
    name = "train-mlp",
    description = {
      "Trains a multi-layer perceptron on all ranks, which average their gradients in buckets"
          + " during the backward pass.",
      "",
      "Layers are matrix products with ReLU, without bias; the loss is the mean squared error;"
          + " steps are those of plain gradient descent or Adam. On the CPU it computes in float64."
          + " N ranks with B rows each see the same rows as one rank with N * B rows.",
      ""
    })
public class TrainMlp extends RankedProgram {
  private static final int DEFAULT_WARM_UP = 5;
  private static final int MOST_ALONE = 100;
  private static final double MEBIBYTE = 1 << 20;

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
          "Updates of the weights, those before a checkpoint included (default:"
              + " ${DEFAULT-VALUE}).")
  private int steps;

  @Option(
      names = "--accumulate",
      paramLabel = "K",
      defaultValue = "1",
      description = "Batches of a step, whose gradients are added up (default: ${DEFAULT-VALUE}).")
  private int accumulate;

  @Mixin private MlpOptimizer optimizer;

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
          "Also tell how much of the averaging is not hidden by the backward pass. Observing costs"
              + " a little.")
  private boolean exposed;

  @Mixin private MlpHook hooks;
  @Mixin private LocalSteps local;
  @Mixin private MlpElastic elastic;
  @Mixin private MlpFiles files;
  @Mixin private MlpCheckpoints checkpoints;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new TrainMlp(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(1, "--rows", rows);
    model.check(this, rows);
    requireAtLeast(1, "--batches", batches);
    requireAtLeast(1, "--steps", steps);
    requireAtLeast(1, "--accumulate", accumulate);
    requireAtLeast(1, "--loss-every", lossEvery);
    optimizer.check(this);
    requirePositive("--bucket-mb", bucketMb);
    requirePositive("--first-bucket-mb", firstBucketMb);
    if (warmUp != null) {
      requireAtLeast(0, "--warmup", warmUp);
      requireAtMost(steps - 1, "--warmup", warmUp);
    }
    if (wire != null && !wire.matches("(?i)b?float16")) {
      throw badUse("--wire takes bfloat16 or float16: --wire " + wire);
    }
    hooks.check(this, optimizer.isSharded());
    boolean whole = hooks.text() != null || optimizer.isSharded() || alone || exposed;
    local.check(this, steps, !whole && !files.hasTimeline() && !checkpoints.areUsed());
    checkpoints.check(this);
    boolean watched = alone || exposed || files.hasTimeline();
    boolean plain = hooks.text() == null && !local.areUsed() && !watched;
    elastic.check(this, plain, optimizer.isSharded(), checkpoints.every());
    files.check(this, checkpoints.file());
  }

  /** Refuses a value that is given and not positive. */
  void requirePositive(String option, Double value) {
    if (value != null && !(value > 0 && value <= Integer.MAX_VALUE)) {
      throw badUse(
          "%s must be more than 0, and %s or less: %s %s"
              .formatted(option, Integer.MAX_VALUE, option, value));
    }
  }

  @Override
  public Set<String> ownOptions() {
    return Set.of("--json", "--plot", "--resume"); // only rank 0 uses them
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    if (wire != null) {
      builder.set("wire", wire.toLowerCase(Locale.ROOT));
    }
    if (elastic.isUsed()) {
      builder.elastic(true);
    }
    builder.stopOnSignal(checkpoints.stopsOnSignal());
  }

  @Override
  public boolean startsTogether() {
    return !elastic.isUsed();
  }

  @Override
  public int run(GradientSync sync) {
    boolean canWrite = sync.rank() != 0 || files.canWrite(this) && canReplace(checkpoints.file());
    if (!elastic.isUsed() && !everywhere(sync, canWrite)) {
      return BAD_USE;
    }
    if (wire != null && !(sync.device() instanceof CudaDevice)) {
      complain(sync, "--wire is for float32 gradients, and those computed on CPUs are float64");
      return BAD_USE;
    }
    if (elastic.isUsed()) {
      return trainElastically(sync, canWrite);
    }
    Compression hook = hooks.create(model.widths());
    try (MlpEngine engine = engine(sync);
        Timeline times = files.timeline(sync, engine, steps, accumulate);
        GradientBuckets buckets = buckets(sync, engine.parameters(), hook)) {
      MlpEngine used = times == null ? engine : times.engine();
      try (Adam adam = optimizer.adam(sync, used, buckets)) {
        return train(sync, used, buckets, hook, adam, times);
      }
    }
  }

  MlpEngine engine(GradientSync sync) {
    return engine(sync, model.widths());
  }

  /** Creates the layers on this rank's device. */
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

  GradientBuckets buckets(GradientSync sync, List<Parameter> parameters, Compression hook) {
    GradientBuckets.Builder builder = GradientBuckets.builder(sync, parameters).overlap(overlap);
    if (bucketMb != null) {
      builder.bucketBytes((long) Math.ceil(bucketMb * MEBIBYTE));
    }
    if (firstBucketMb != null) {
      builder.firstBucketBytes((long) Math.ceil(firstBucketMb * MEBIBYTE));
    }
    if (optimizer.isSharded()) {
      builder.sharded();
    }
    if (hook != null) {
      builder.hook(hook);
    }
    return builder.build();
  }

  private int train(
      GradientSync sync,
      MlpEngine engine,
      GradientBuckets buckets,
      Compression hook,
      Adam adam,
      Timeline times) {
    stage(sync, "making the data");
    MlpData data = model.data();
    long first = start(sync, engine.weights(), adam, hook);
    if (first < 0) {
      return CANNOT_RUN;
    }
    if (first == steps && checkpoints.goesOn()) {
      buckets.broadcast(engine.weights(), 0);
      print(sync, "Nothing is left to do: steps done: %d", steps);
      return finished(sync, engine);
    }
    if (first >= steps) {
      complain(sync, "nothing is left to do: --steps " + steps + ", steps done=" + first);
      return BAD_USE;
    }
    buckets.broadcast(engine.weights(), 0);
    MlpTrainer trainer = trainer(sync, engine, buckets, adam, data);
    printStart(sync, engine, buckets, adam, first);
    Exposure exposure = exposed || times != null ? new Exposure() : null;
    MlpRun run = new MlpRun(this, sync, trainer, plan(sync, first), exposure, times, hook);
    if (!run.train()) {
      return CANNOT_RUN;
    }
    if (run.stoppedAfter() > 0) {
      print(sync, "Stopped by a signal, steps done: %d", run.stoppedAfter());
      return finished(sync, engine);
    }
    Map<String, Object> results = results(sync, run);
    if (adam != null) {
      results.put("stateBytes", adam.bytes());
    }
    if (hook != null || local.areUsed()) {
      long all = engine.weights().stream().mapToLong(DeviceBuffer::sizeInBytes).sum();
      results.put("gradientBytes", all);
      results.put(
          "bytesPerStep", hook != null ? hook.bytes() / (steps - first) : all / local.number());
    }
    boolean same = sameWeights(sync, engine.weights(), results);
    boolean finite = everywhere(sync, Weights.areFinite(engine.weights()));
    finite &= Double.isFinite(run.lastLoss());
    results.put("loss", run.lastLoss());
    if (data instanceof IrisData iris) {
      Layer[] layers = HostMlp.layers(model.widths());
      double[][] weights = engine.weights().stream().map(Weights::get).toArray(double[][]::new);
      results.put("trainingAccuracy", iris.accuracy(layers, weights, false));
      results.put("testAccuracy", iris.accuracy(layers, weights, true));
    }
    List<TimelineEvent> events = List.of();
    if (exposure != null) {
      hearOfAll(sync);
      exposure.putInto(results, sync, run.timedSteps());
      events = times == null ? events : times.gather();
    }
    if (alone) {
      stage(sync, "timing steps without averaging");
      double time = run.millisecondsAlone(MOST_ALONE);
      results.put("aloneMillisecondsPerStep", time);
      results.put("efficiency", time / (double) results.get("millisecondsPerStep"));
    }
    printResults(sync, results);
    if (first == 0 && run.losses().size() > 1 && run.lastLoss() >= run.losses().get(0).loss()) {
      print(sync, "The loss has not gone down: try another --rate.");
    }
    if (!everywhere(sync, sync.rank() != 0 || write(sync, results, run.losses(), events))) {
      return CANNOT_RUN;
    }
    return printVerdict(sync, same, finite);
  }

  /** Trains with ranks that may be lost and may join: those that join call nothing before. */
  private int trainElastically(GradientSync sync, boolean canWrite) {
    ElasticMlp loop = new ElasticMlp(this, sync, optimizer.isSharded());
    try (ElasticTraining training = elastic.training(sync, loop, optimizer.isSharded());
        loop) {
      long first = canWrite ? startElastically(sync, loop.state()) : -1;
      loop.start(first, first >= 0 ? 0 : canWrite ? CANNOT_RUN : BAD_USE);
      if (!training.run(first >= 0 ? first : Long.MAX_VALUE, steps)) { // all take over the highest
        return !training.haveAllLeft() || loop.keepAtEnd() ? RIGHT : CANNOT_RUN;
      }
      return loop.refusal() != 0 ? loop.refusal() : finishElastically(training, loop);
    }
  }

  /**
   * Reads the checkpoint on each rank that has it, or sets the initial weights. Returns the steps
   * already done, or -1 if rank 0 cannot read the checkpoint.
   */
  private long startElastically(GradientSync sync, List<DeviceBuffer> state) {
    boolean needed = sync.rank() == 0 && checkpoints.resumed() != null;
    long done =
        needed
            ? checkpoints.read(this, training(), state, null)
            : checkpoints.readIfThere(training(), state);
    if (done == 0) {
      model.setFirst(state);
    }
    return done;
  }

  /** Prints the results. Collective. */
  private int finishElastically(ElasticTraining training, ElasticMlp loop) {
    GradientSync sync = training.sync();
    Map<String, Object> results = new LinkedHashMap<>();
    boolean same = sameWeights(sync, loop.weights(), results);
    if (loop.first() == steps && checkpoints.goesOn()) {
      print(sync, "Nothing is left to do: steps done: %d", steps);
      printDigest(sync, results);
      return printVerdict(sync, same, true);
    }
    if (loop.first() >= steps) {
      complain(sync, "nothing is left to do: --steps " + steps + ", steps done=" + loop.first());
      return BAD_USE;
    }
    double loss = loop.losses().get(loop.losses().size() - 1).loss();
    results.put("loss", loss);
    results.put("changes", loop.changes());
    boolean finite = Double.isFinite(loss) && Weights.areFinite(loop.weights());
    print(sync, "Final loss: %.6g", loss);
    print(sync, "Ranks at the end: %d, changes: %d", sync.size(), loop.changes());
    printDigest(sync, results);
    boolean kept =
        loop.hasKept() && (sync.rank() != 0 || write(sync, results, loop.losses(), List.of()));
    if (!everywhere(sync, kept)) {
      return CANNOT_RUN;
    }
    return printVerdict(sync, same, everywhere(sync, finite));
  }

  Adam adam(GradientSync sync, MlpEngine engine, GradientBuckets buckets) {
    return optimizer.adam(sync, engine, buckets);
  }

  /** Creates what runs the steps, and loads this rank's share of the data. */
  MlpTrainer trainer(GradientSync sync, MlpEngine engine, GradientBuckets buckets, Adam adam) {
    return trainer(sync, engine, buckets, adam, model.data());
  }

  private MlpTrainer trainer(
      GradientSync sync, MlpEngine engine, GradientBuckets buckets, Adam adam, MlpData data) {
    MlpTrainer.load(sync, engine, data, batches, rows, model.widths());
    return new MlpTrainer(
        sync, engine, buckets, batches, accumulate, optimizer.rate(), adam, local);
  }

  boolean readsLoss(long step) {
    return step == steps - 1 || step % lossEvery == 0;
  }

  void printStart(
      GradientSync sync, MlpEngine engine, GradientBuckets buckets, Adam adam, long first) {
    printHeader(sync, engine.parameters(), buckets, first);
    if (adam != null) {
      printState(sync, adam);
    }
  }

  /** Compares the weights of a training that an earlier run has finished, or a later one will. */
  private int finished(GradientSync sync, MlpEngine engine) {
    Map<String, Object> results = new LinkedHashMap<>();
    boolean same = sameWeights(sync, engine.weights(), results);
    printDigest(sync, results);
    return printVerdict(sync, same, true); // no checkpoint is written of a training that diverged
  }

  /**
   * Sets the initial weights on rank 0, and the state of Adam and of the hook on all ranks.
   * Collective. Returns the steps already done, or -1 if the checkpoint cannot be read.
   */
  private long start(GradientSync sync, List<DeviceBuffer> weights, Adam adam, Compression hook) {
    long[] done = {0};
    List<byte[]> states = hook == null ? null : new ArrayList<>();
    if (sync.rank() == 0 && checkpoints.resumed() != null) {
      List<DeviceBuffer> state = new ArrayList<>(weights);
      if (adam != null) {
        state.addAll(adam.whole());
      }
      done[0] = checkpoints.read(this, training(), state, states);
      if (done[0] >= 0 && hook != null && states.size() != sync.size()) {
        printError(
            "cannot resume with a hook on another number of ranks: ranks=%d, ranks before=%d",
            sync.size(), states.size());
        done[0] = -1;
      }
    } else if (sync.rank() == 0) {
      model.setFirst(weights);
    }
    sync.communicator().broadcast(LongBuffer.wrap(done), 0);
    if (adam != null && done[0] > 0) {
      adam.scatter();
    }
    if (hook != null && done[0] > 0) {
      MlpHook.scatter(sync, hook, states);
    }
    return done[0];
  }

  private Checkpoint.Training training() {
    return model.training(optimizer.kind() + hooks.suffix());
  }

  private MlpRun.Plan plan(GradientSync sync, long first) {
    int left = (int) (steps - 1 - first);
    int untimed = Math.min(left, warmUp == null ? DEFAULT_WARM_UP : warmUp);
    return new MlpRun.Plan(first, steps, first + untimed, lossEvery, rowsPerStep(sync));
  }

  private double rowsPerStep(GradientSync sync) {
    return (double) rows * accumulate * sync.size();
  }

  /** Makes a call that reports all finished averages. */
  private static void hearOfAll(GradientSync sync) {
    try (DeviceBuffer one = sync.allocate(DataType.FLOAT32, 1)) {
      sync.average(one);
    }
  }

  long steps() {
    return steps;
  }

  boolean stopsOnSignal() {
    return checkpoints.stopsOnSignal();
  }

  /** Returns whether to write a checkpoint after this many steps. */
  boolean keeps(long done, boolean last) {
    return checkpoints.isDue(done, last);
  }

  boolean keep(long done, List<DeviceBuffer> state, List<byte[]> hookStates, boolean finiteLosses) {
    return checkpoints.write(this, training(), done, state, hookStates, finiteLosses);
  }

  /** Collective. */
  private Map<String, Object> results(GradientSync sync, MlpRun run) {
    Map<String, Object> results = new LinkedHashMap<>();
    double time = run.millisecondsPerStep();
    results.put("timedSteps", run.timedSteps());
    results.put("millisecondsPerStep", time);
    results.put("rowsPerSecond", rowsPerStep(sync) / time * 1e3);
    return results;
  }

  /** Returns whether all ranks have the same weights, bit by bit. Collective. */
  private boolean sameWeights(
      GradientSync sync, List<DeviceBuffer> weights, Map<String, Object> results) {
    long[] own = {Weights.digest(weights)};
    long[] all = new long[sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    results.put(
        "digests",
        Arrays.stream(all).mapToObj(d -> String.format(Locale.ROOT, "%016x", d)).toList());
    return Arrays.stream(all).allMatch(digest -> digest == all[0]);
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
    if (checkpoints.resumed() != null) {
      print(sync, "Resumed: %s, steps done: %d", checkpoints.resumed(), first);
    }
  }

  private void printState(GradientSync sync, Adam adam) {
    if (adam.isSharded()) {
      double share = 100.0 * adam.bytes() / adam.bytesOfAll();
      print(
          sync,
          "Adam's moments: %d bytes on each rank, %.1f%% of the %d without --sharded",
          adam.bytes(),
          share,
          adam.bytesOfAll());
    } else {
      print(sync, "Adam's moments: %d bytes on each rank", adam.bytes());
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
        "Step: %s, mean of %d steps, checkpoints left out",
        Units.time((double) results.get("millisecondsPerStep")),
        results.get("timedSteps"));
    if (alone) {
      print(
          sync,
          "Step without averaging: %s, efficiency: %.3f",
          Units.time((double) results.get("aloneMillisecondsPerStep")),
          results.get("efficiency"));
    }
    if (results.containsKey("exposedShare")) {
      print(
          sync,
          "Averaging: %s in a step, %s of it exposed (%.1f%%), mean over the ranks",
          Units.time((double) results.get("averagingMillisecondsPerStep")),
          Units.time((double) results.get("exposedMillisecondsPerStep")),
          100 * (double) results.get("exposedShare"));
    }
    if (results.containsKey("bytesPerStep")) {
      long bytes = (long) results.get("bytesPerStep");
      long all = (long) results.get("gradientBytes");
      print(
          sync,
          "Bytes per step: %d given to collectives on each rank, %.1f%% of the %d of the gradients",
          bytes,
          100.0 * bytes / all,
          all);
    }
    printDigest(sync, results);
  }

  private void printDigest(GradientSync sync, Map<String, Object> results) {
    print(sync, "Digest of the weights: %s", ((List<?>) results.get("digests")).get(0));
  }

  private boolean write(
      GradientSync sync,
      Map<String, Object> results,
      List<MlpTrainer.Loss> losses,
      List<TimelineEvent> events) {
    Map<String, Object> all = about(sync);
    all.putAll(results);
    String title = model.source() + ", widths " + model.text() + ", " + sync.size() + " ranks";
    return files.write(this, all, title, losses)
        && files.writeTimeline(this, title, sync.size(), events);
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
    about.put("optimizer", optimizer.kind().name());
    about.put("sharded", optimizer.isSharded());
    about.put("rate", optimizer.rate());
    about.put("seed", model.seed());
    about.put("overlap", overlap);
    about.put("hook", hooks.text());
    about.put("localSteps", local.number());
    about.put("elastic", elastic.isUsed());
    about.put("wire", wire);
    about.put("tf32", tf32);
    return about;
  }
}

package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.hooks.Compression;
import org.gradientsync.tools.program.RankedProgram;

/** One rank's training from the first step to the last, with its losses, times and checkpoints. */
final class MlpRun {
  /**
   * The steps to make.
   *
   * @param first the first step, from 0; earlier ones are already done
   * @param steps the total number of steps, including those before the first
   * @param firstTimed the step at which the clock starts
   * @param lossEvery how often to read the loss, in steps
   * @param rowsPerStep the rows of all ranks in a step
   */
  record Plan(long first, long steps, long firstTimed, int lossEvery, double rowsPerStep) {}

  private static final long BAR_PAUSE = TimeUnit.MILLISECONDS.toNanos(250);

  private final TrainMlp program;
  private final GradientSync sync;
  private final MlpTrainer trainer;
  private final Plan plan;
  private final Exposure exposure; // may be null
  private final Timeline timeline; // may be null
  private final Compression hook; // may be null
  private final List<MlpTrainer.Loss> losses = new ArrayList<>();
  private boolean timing;
  private long started;
  private long nanos;
  private long shown;
  private long shownStep;
  private long stoppedAfter; // steps, or 0

  /**
   * Creates a run.
   *
   * @param program writes checkpoints and shows progress
   * @param exposure observes the averages of the timed steps, or null
   * @param timeline records the times of the last steps, or null
   * @param hook takes the place of averages, or null
   */
  MlpRun(
      TrainMlp program,
      GradientSync sync,
      MlpTrainer trainer,
      Plan plan,
      Exposure exposure,
      Timeline timeline,
      Compression hook) {
    this.program = program;
    this.sync = sync;
    this.trainer = trainer;
    this.plan = plan;
    this.exposure = exposure;
    this.timeline = timeline;
    this.hook = hook;
  }

  /** Trains. Collective. Returns whether all checkpoints were written. */
  boolean train() {
    shown = System.nanoTime();
    shownStep = plan.first;
    for (long step = plan.first; step < plan.steps; step++) {
      if (timeline != null && step == Math.max(plan.first, plan.steps - timeline.steps())) {
        startTimeline(step);
      }
      if (step == plan.firstTimed) {
        startTiming();
      }
      boolean last = step == plan.steps - 1;
      boolean read = last || step % plan.lossEvery == 0;
      trainer.step(step, read);
      if (read) {
        losses.add(new MlpTrainer.Loss(step, trainer.loss()));
      }
      boolean stops = !last && program.stopsOnSignal() && trainer.stopRequested();
      if (last || stops) {
        pause();
      }
      if (program.keeps(step + 1, last || stops) && !keep(step + 1, last || stops)) {
        return false;
      }
      if (stops) {
        stoppedAfter = step + 1;
        return true;
      }
      show(step + 1);
    }
    return true;
  }

  private void startTiming() {
    trainer.await();
    if (exposure != null) {
      exposure.start(sync);
    }
    sync.barrier();
    timing = true;
    go();
  }

  /** Stops the clock after all enqueued work. */
  private void pause() {
    trainer.await();
    if (timing) {
      nanos += System.nanoTime() - started;
    }
  }

  private void go() {
    started = System.nanoTime();
  }

  /** Starts the timeline while the clock stands still. Collective. */
  private void startTimeline(long step) {
    pause();
    timeline.start(step);
    trainer.await();
    sync.barrier();
    go();
  }

  /** Writes a checkpoint on rank 0 while the clock stands still. Collective. */
  private boolean keep(long done, boolean paused) {
    if (!paused) {
      pause();
    }
    boolean finite = losses.stream().allMatch(loss -> Double.isFinite(loss.loss()));
    List<DeviceBuffer> state = trainer.gatherState();
    List<byte[]> hooks = MlpHook.gather(sync, hook);
    boolean kept =
        RankedProgram.everywhere(
            sync, sync.rank() != 0 || program.keep(done, state, hooks, finite));
    go();
    return kept;
  }

  private void show(long done) {
    long now = System.nanoTime();
    if (sync.rank() != 0 || now - shown < BAR_PAUSE) {
      return;
    }
    double rate = plan.rowsPerStep * (done - shownStep) / ((now - shown) / 1e9);
    String loss = losses.isEmpty() ? "" : String.format(Locale.ROOT, "loss %.4g, ", lastLoss());
    program.bar(done, plan.steps, loss + String.format(Locale.ROOT, "%.0f rows/s", rate));
    shown = now;
    shownStep = done;
  }

  /** Returns after how many steps the ranks have stopped together; 0 if they have made all. */
  long stoppedAfter() {
    return stoppedAfter;
  }

  /** Returns all losses read, including the last step's. */
  List<MlpTrainer.Loss> losses() {
    return losses;
  }

  double lastLoss() {
    return losses.get(losses.size() - 1).loss();
  }

  long timedSteps() {
    return plan.steps - plan.firstTimed;
  }

  /** Returns the slowest rank's time for a step. Collective. */
  double millisecondsPerStep() {
    return slowest(nanos, timedSteps());
  }

  /**
   * Returns the slowest rank's time for a step without averaging. This spoils the weights.
   * Collective.
   *
   * @param most the largest number of steps to make
   */
  double millisecondsAlone(int most) {
    long timed = Math.min(timedSteps(), most);
    trainer.stepAlone(0, false);
    trainer.await();
    sync.barrier();
    long start = System.nanoTime();
    for (long step = 0; step < timed; step++) {
      trainer.stepAlone(step, step % plan.lossEvery == 0);
    }
    trainer.await();
    return slowest(System.nanoTime() - start, timed);
  }

  private double slowest(long nanos, long steps) {
    double[] time = {RankedProgram.milliseconds(nanos) / steps};
    sync.communicator().allReduce(DoubleBuffer.wrap(time), ReduceOp.MAX);
    return time[0];
  }
}

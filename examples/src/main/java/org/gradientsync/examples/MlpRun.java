package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** One rank's training from its first step to its last: its losses, times, and checkpoints. */
final class MlpRun {
  /**
   * Which steps.
   *
   * @param first the first one, from 0; those before are done already
   * @param steps the number of them, those before the first included
   * @param firstTimed where the clock starts
   * @param lossEvery steps from one reading of the loss to the next
   * @param rowsPerStep rows of all ranks
   */
  record Plan(long first, long steps, long firstTimed, int lossEvery, double rowsPerStep) {}

  private static final long BAR_PAUSE = TimeUnit.MILLISECONDS.toNanos(250);

  private final TrainMlp program;
  private final GradientSync sync;
  private final MlpTrainer trainer;
  private final Plan plan;
  private final Exposure exposure; // or null
  private final Timeline timeline; // or null
  private final List<MlpTrainer.Loss> losses = new ArrayList<>();
  private boolean timing;
  private long started;
  private long nanos;
  private long shown;
  private long shownStep;

  /**
   * Prepares it.
   *
   * @param program writes checkpoints and shows progress
   * @param exposure what is told of the averages of the timed steps, or null
   * @param timeline what takes the times of the last steps, or null
   */
  MlpRun(
      TrainMlp program,
      GradientSync sync,
      MlpTrainer trainer,
      Plan plan,
      Exposure exposure,
      Timeline timeline) {
    this.program = program;
    this.sync = sync;
    this.trainer = trainer;
    this.plan = plan;
    this.exposure = exposure;
    this.timeline = timeline;
  }

  /**
   * Trains. Collective.
   *
   * @return whether all checkpoints could be written
   */
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
      if (last) {
        pause();
      }
      if (program.keeps(step + 1) && !keep(step + 1, last)) {
        return false;
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

  /** Stops the clock when all that was enqueued is done. */
  private void pause() {
    trainer.await();
    if (timing) {
      nanos += System.nanoTime() - started;
    }
  }

  private void go() {
    started = System.nanoTime();
  }

  /** The clock stands still meanwhile. Collective. */
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
    boolean kept =
        Example.everywhere(sync, sync.rank() != 0 || program.keep(done, trainer.weights(), finite));
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

  /** All losses that were read; the last step's is among them. */
  List<MlpTrainer.Loss> losses() {
    return losses;
  }

  double lastLoss() {
    return losses.get(losses.size() - 1).loss();
  }

  long timedSteps() {
    return plan.steps - plan.firstTimed;
  }

  /** The slowest rank's time for a step. Collective. */
  double millisecondsPerStep() {
    return slowest(nanos, timedSteps());
  }

  /**
   * The slowest rank's time for a step without averaging, which loses the weights. Collective.
   *
   * @param most steps that are made for it
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
    double[] time = {Example.milliseconds(nanos) / steps};
    sync.communicator().allReduce(DoubleBuffer.wrap(time), ReduceOp.MAX);
    return time[0];
  }
}

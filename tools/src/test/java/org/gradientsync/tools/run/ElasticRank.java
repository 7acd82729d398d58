package org.gradientsync.tools.run;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.elastic.ElasticLoop;
import org.gradientsync.elastic.ElasticTraining;

/** A training of {@link RunIT} that goes on when ranks are lost. */
final class ElasticRank implements ElasticLoop {
  private static final int LOSS_AT = 5; // step
  private static final int LATER = 150; // steps
  private static final int KILLED = 137;

  private final String what;
  private final int rank;
  private final DeviceBuffer weight;
  private ElasticTraining itself;
  private GradientSync ranks;
  private boolean isOfTheStart;

  private ElasticRank(GradientSync sync, String what) {
    this.what = what;
    rank = sync.rank();
    weight = sync.allocate(DataType.FLOAT32, 1);
  }

  /** Trains, and says so if it was to stop. */
  static void train(GradientSync sync, String what) {
    ElasticRank loop = new ElasticRank(sync, what);
    try (ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
      loop.itself = training;
      long end = what.equals("elastic-too-few") ? LOSS_AT + 2 * LATER : Long.MAX_VALUE;
      if (training.run(0, end)) {
        System.out.println("has trained with " + training.sync().size());
      } else if (training.haveAllLeft()) {
        System.out.println("has saved");
      } else if (what.equals("elastic-left")) {
        awaitLoss();
      }
    }
  }

  /** Waits until another rank of this machine has ended. */
  private static void awaitLoss() {
    ProcessHandle launcher = ProcessHandle.current().parent().orElseThrow();
    CompletableFuture.anyOf(
            launcher
                .children()
                .filter(child -> !child.equals(ProcessHandle.current()))
                .map(ProcessHandle::onExit)
                .toArray(CompletableFuture[]::new))
        .join();
  }

  @Override
  public void begin(GradientSync sync) {
    ranks = sync;
  }

  @Override
  public void compute(long step) {
    try {
      Thread.sleep(10);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (step == LOSS_AT) {
      System.err.println("complains: it trains");
      loseTheFirst();
    }
    if (what.equals("elastic-left") && ranks.size() == 1) {
      Runtime.getRuntime().halt(KILLED);
    }
    isOfTheStart |= step == 0;
    boolean isLater = what.equals("elastic-first-host") && step >= LOSS_AT + LATER;
    if (isLater && rank == 2 && isOfTheStart) {
      Runtime.getRuntime().halt(KILLED);
    }
    ranks.average(weight);
    if (isLater && ranks.size() == 3) { // both have come again
      itself.leave();
    }
  }

  private void loseTheFirst() {
    if (what.equals("elastic-left") && rank == 0) {
      itself.leave();
    }
    if (what.equals("elastic-too-few") && rank == 1) {
      Runtime.getRuntime().halt(KILLED);
    }
    if (what.equals("elastic-first-host") && rank == 0) {
      ProcessHandle.current().parent().orElseThrow().destroyForcibly();
      Runtime.getRuntime().halt(KILLED);
    }
  }

  @Override
  public void update(long step) {
    // the state is the average
  }

  @Override
  public void end() {
    // begin has made nothing
  }

  @Override
  public List<DeviceBuffer> state() {
    return List.of(weight);
  }
}

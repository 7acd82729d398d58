package org.gradientsync.examples.hybrid;

import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntConsumer;
import org.gradientsync.GradientSync;

/** One rank's part of the training. */
public final class HybridTraining implements AutoCloseable {
  private final HybridSettings settings;
  private final Groups groups;
  private final TensorSum tensorSum;
  private final PipelineLinks links;
  private final Stage stage;
  private final GradientAverages averages;
  private final List<Schedule.Action> schedule;
  private final boolean isFirst;
  private final boolean isLast;

  // what the next action of the schedule takes
  private double[] activations;
  private double[] gradients;
  private double loss;

  /**
   * Creates this rank's part of the model. Collective.
   *
   * @param sync all ranks, as many as the grid has
   * @param settings the same on all ranks
   */
  public HybridTraining(GradientSync sync, HybridSettings settings) {
    this.settings = settings;
    Grid grid = settings.grid();
    Model model = settings.model();
    int number = grid.stage(sync.rank());
    int elements = settings.rows() * model.width();
    isFirst = number == 0;
    isLast = number == grid.pipeline() - 1;
    groups = new Groups(sync, grid);
    tensorSum = new TensorSum(groups.tensor(), elements);
    links = new PipelineLinks(groups.pipeline(), elements);
    stage = new Stage(model, number, grid.pipeline(), tensorSum, settings.recompute());
    averages = new GradientAverages(groups.data(), stage.weights());
    schedule = Schedule.of(number, grid.pipeline(), settings.microBatches());
  }

  /**
   * Makes one step together with the other ranks. Collective.
   *
   * @param step from 0, one after the other
   * @return this rank's share of the loss: the sum over all ranks is the mean over the step's rows
   */
  public double step(long step) {
    loss = 0;
    for (Schedule.Action action : schedule) {
      int microBatch = action.microBatch();
      switch (action.kind()) {
        case RECEIVE_ACTIVATIONS -> activations = links.receiveActivations();
        case FORWARD -> forward(step, microBatch);
        case SEND_ACTIVATIONS -> links.sendActivations(activations);
        case RECEIVE_GRADIENTS -> gradients = links.receiveGradients();
        case BACKWARD -> backward(step, microBatch);
        case SEND_GRADIENTS -> links.sendGradients(gradients);
      }
    }
    if (settings.updatesAfter(step)) {
      averages.update(settings.rate());
    }
    return loss;
  }

  private void forward(long step, int microBatch) {
    double[] inputs = isFirst ? inputs(step, microBatch) : activations;
    activations = stage.forward(microBatch, inputs);
    if (isLast) {
      double[] targets = settings.model().targets(isFirst ? inputs : inputs(step, microBatch));
      if (groups.tensor().rank() == 0) { // the others have the same outputs
        loss +=
            SquaredError.loss(activations, targets)
                / ((double) settings.microBatches() * settings.grid().data());
      }
      // The gradients that the data ranks average are means over their own rows.
      double scale = 1.0 / ((double) settings.microBatches() * settings.accumulate());
      gradients = SquaredError.slopes(activations, targets, scale);
    }
  }

  private double[] inputs(long step, int microBatch) {
    long firstRow = settings.firstRow(step, groups.data().rank(), microBatch);
    return settings.model().inputs(firstRow, settings.rows());
  }

  private void backward(long step, int microBatch) {
    boolean complete = settings.updatesAfter(step) && microBatch == settings.microBatches() - 1;
    IntConsumer added = complete ? averages::ready : index -> {};
    gradients = stage.backward(microBatch, gradients, added);
  }

  /** {@return the reducers of this rank's groups, as text for users} */
  public String reducers() {
    return "tensor %s, data %s, pipeline %s"
        .formatted(groups.tensor().reducer(), groups.data().reducer(), groups.pipeline().reducer());
  }

  /**
   * {@return whether all weights have the same bits in this rank's data group, and those that are
   * not divided in its tensor group, too} Collective.
   */
  public boolean hasSameWeights() {
    return hasSame(groups.data(), stage.weights()) & hasSame(groups.tensor(), stage.replicated());
  }

  private static boolean hasSame(GradientSync group, List<Weights> weights) {
    boolean same = true;
    for (Weights own : weights) {
      double[] first = own.values().clone();
      group.communicator().broadcast(DoubleBuffer.wrap(first), 0);
      same &= Arrays.equals(own.values(), first); // compares the bits
    }
    return same;
  }

  /**
   * Computes the memory for activations on the rank that needs the most.
   *
   * @param settings what is trained
   * @param recompute with or without recomputing
   * @return the most bytes at any time
   */
  public static long activationBytes(HybridSettings settings, boolean recompute) {
    return ActivationMemory.mostBytes(settings, recompute);
  }

  Stage stage() {
    return stage;
  }

  @Override
  public void close() {
    averages.close();
    links.close();
    tensorSum.close();
    groups.close();
  }
}

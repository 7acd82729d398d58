package org.gradientsync.examples.hybrid;

import java.util.ArrayList;
import java.util.List;

/**
 * What a stage does in a step: the schedule 1F1B ("one forward, one backward"). After some forward
 * passes that fill the pipeline, each stage alternates between a forward and a backward pass, so
 * that few micro-batches are in flight and their activations take little memory.
 *
 * <p><b>It cannot deadlock, even if each send waits for its receive.</b> With S stages, give each
 * message a number:
 *
 * <ul>
 *   <li>activations of micro-batch i from stage s to stage s + 1: 2i + s
 *   <li>gradients of micro-batch i from stage s + 1 to stage s: 2(S - 1 + i) - s, and in case of a
 *       tie they come after activations
 * </ul>
 *
 * <p>Each stage sends and receives in the order of these numbers. Of all messages that are not yet
 * done, take the one with the smallest number. Both its stages have done all their messages before
 * it, and each waits only for messages, so both arrive at it, and it is transferred. Sums over the
 * tensor group fit into this order, because all ranks of a group have the same schedule.
 *
 * <p>The order of two messages matters: a stage receives its next activations <em>before</em> it
 * sends gradients. The stage before it sends these activations, and only then receives the
 * gradients. If both sent first, they would wait for each other.
 */
final class Schedule {
  /** What a stage can do. */
  enum Kind {
    RECEIVE_ACTIVATIONS,
    FORWARD,
    SEND_ACTIVATIONS,
    RECEIVE_GRADIENTS,
    BACKWARD,
    SEND_GRADIENTS
  }

  /** Something to do for one micro-batch. */
  record Action(Kind kind, int microBatch) {}

  private final boolean isFirst;
  private final boolean isLast;
  private final List<Action> actions = new ArrayList<>();

  private Schedule(int stage, int stages, int microBatches) {
    isFirst = stage == 0;
    isLast = stage == stages - 1;
    int ahead = inFlight(stage, stages, microBatches) - 1; // forward passes before the alternation
    for (int i = 0; i < ahead; i++) {
      receiveActivations(i);
      forward(i);
    }
    receiveActivations(ahead);
    for (int i = 0; i < microBatches; i++) {
      int next = ahead + i;
      if (next < microBatches) {
        forward(next);
      }
      backward(i);
      if (next + 1 < microBatches) {
        receiveActivations(next + 1);
      }
      sendGradients(i);
    }
  }

  /**
   * Returns the schedule of a stage.
   *
   * @param microBatches at least one
   */
  static List<Action> of(int stage, int stages, int microBatches) {
    return new Schedule(stage, stages, microBatches).actions;
  }

  /** Returns how many micro-batches a stage has at most between forward and backward pass. */
  static int inFlight(int stage, int stages, int microBatches) {
    return Math.min(microBatches, stages - stage);
  }

  private void receiveActivations(int microBatch) {
    if (!isFirst) {
      add(Kind.RECEIVE_ACTIVATIONS, microBatch);
    }
  }

  private void forward(int microBatch) {
    add(Kind.FORWARD, microBatch);
    if (!isLast) {
      add(Kind.SEND_ACTIVATIONS, microBatch);
    }
  }

  private void backward(int microBatch) {
    if (!isLast) {
      add(Kind.RECEIVE_GRADIENTS, microBatch);
    }
    add(Kind.BACKWARD, microBatch);
  }

  private void sendGradients(int microBatch) {
    if (!isFirst) {
      add(Kind.SEND_GRADIENTS, microBatch);
    }
  }

  private void add(Kind kind, int microBatch) {
    actions.add(new Action(kind, microBatch));
  }
}

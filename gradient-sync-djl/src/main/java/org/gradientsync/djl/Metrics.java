package org.gradientsync.djl;

import ai.djl.metric.Metric;
import ai.djl.ndarray.NDList;
import ai.djl.training.Trainer;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.ReduceOp;

/**
 * The metrics of an epoch over all ranks.
 *
 * <p>DJL's {@code EvaluatorTrainingListener} reads the evaluators at the end of an epoch, publishes
 * their values, and resets them. At that reset the published values are replaced, before other
 * listeners see them.
 */
final class Metrics {
  static final String[] STAGES = {
    EvaluatorTrainingListener.TRAIN_EPOCH, EvaluatorTrainingListener.VALIDATE_EPOCH
  };

  private final ElasticCalls calls;
  private final Trainer trainer;
  private final DataParallel owner;
  private final List<RankEvaluator> evaluators = new ArrayList<>();
  private final List<EvaluatorTrainingListener> publishers = new ArrayList<>();
  private float[] values;
  private boolean readBefore;

  Metrics(ElasticCalls calls, Trainer trainer, DataParallel owner) {
    this.calls = calls;
    this.trainer = trainer;
    this.owner = owner;
    trainer
        .getEvaluators()
        .replaceAll(
            evaluator -> {
              RankEvaluator wrapper =
                  new RankEvaluator(evaluator, evaluators.isEmpty() ? this::onReset : () -> {});
              evaluators.add(wrapper);
              return wrapper;
            });
    boolean[] passed = {false};
    trainer.notifyListeners(listener -> find(listener, passed));
  }

  private void find(TrainingListener listener, boolean[] passed) {
    passed[0] |= listener == owner;
    if (listener instanceof EvaluatorTrainingListener publisher) {
      readBefore |= publishers.isEmpty() && !passed[0];
      publishers.add(publisher);
    }
  }

  /** Whether DJL's listener of the evaluators is called before {@link DataParallel}. */
  boolean areReadBefore() {
    return readBefore;
  }

  /** The predictions of the first batch of a validation are others than those evaluated so far. */
  void correct(NDList labels, NDList predictions) {
    if (readBefore) {
      evaluators.forEach(evaluator -> evaluator.correct(labels, predictions));
    }
  }

  /** Computes the means over all rows of all ranks. Collective. */
  void average() {
    double[] sums = new double[evaluators.size() * STAGES.length * 2];
    int at = 0;
    for (RankEvaluator evaluator : evaluators) {
      for (String stage : STAGES) {
        sums[at++] = evaluator.sum(stage);
        sums[at++] = evaluator.rows(stage);
      }
      evaluator.resetSums();
    }
    calls.run(
        sums,
        List::of,
        () -> calls.sync().communicator().allReduce(DoubleBuffer.wrap(sums), ReduceOp.SUM));
    values = new float[sums.length / 2];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          (float) (sums[2 * i] / sums[2 * i + 1]); // NaN where there were no rows, as in DJL
    }
  }

  /** DJL has published this rank's values. */
  private void onReset() {
    if (readBefore) {
      owner.endEpochOnce(trainer);
    }
    if (values == null || publishers.isEmpty()) {
      return; // reset by someone else
    }
    for (int i = 0; i < evaluators.size(); i++) {
      publish(evaluators.get(i), values[STAGES.length * i], values[STAGES.length * i + 1]);
    }
    values = null;
  }

  private void publish(RankEvaluator evaluator, float train, float validate) {
    replaceMetric(EvaluatorTrainingListener.metricName(evaluator, STAGES[0]), train);
    replaceMetric(EvaluatorTrainingListener.metricName(evaluator, STAGES[1]), validate);
    for (EvaluatorTrainingListener publisher : publishers) {
      Map<String, Float> latest = publisher.getLatestEvaluations();
      latest.put("train_" + evaluator.getName(), train);
      latest.put("validate_" + evaluator.getName(), validate);
      if (evaluator.isOf(trainer.getLoss())) {
        latest.put("train_loss", train);
        latest.put("validate_loss", validate);
      }
    }
  }

  private void replaceMetric(String name, float value) {
    if (trainer.getMetrics() != null) {
      List<Metric> history = trainer.getMetrics().getMetric(name);
      history.set(history.size() - 1, new Metric(name, value));
    }
  }
}

package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.evaluator.Evaluator;
import ai.djl.training.loss.Loss;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * An evaluator that also counts rows, so that its values of an epoch can be averaged over ranks.
 */
final class RankEvaluator extends Evaluator {
  private static final String BATCH = "gradient-sync/batch";

  private final Evaluator evaluator;
  private final Runnable onReset;
  private final Map<String, Double> sums = new HashMap<>();
  private final Map<String, Long> rows = new HashMap<>();

  /**
   * For one evaluator.
   *
   * @param onReset called before the epoch's values are set back
   */
  RankEvaluator(Evaluator evaluator, Runnable onReset) {
    super(evaluator.getName());
    this.evaluator = evaluator;
    this.onReset = onReset;
    evaluator.addAccumulator(BATCH);
  }

  boolean isOf(Evaluator other) {
    return evaluator == other;
  }

  /** The values of the epoch's batches, each times the batch's rows. */
  double sum(String stage) {
    return sums.getOrDefault(stage, 0.0);
  }

  long rows(String stage) {
    return rows.getOrDefault(stage, 0L);
  }

  void resetSums() {
    sums.clear();
    rows.clear();
  }

  /** Counts the validation's only batch so far anew. */
  void correct(NDList labels, NDList predictions) {
    String validation = Metrics.STAGES[1];
    sums.remove(validation);
    rows.remove(validation);
    updateAccumulators(new String[] {validation}, labels, predictions);
  }

  @Override
  public NDArray evaluate(NDList labels, NDList predictions) {
    return evaluator.evaluate(labels, predictions);
  }

  @Override
  public void addAccumulator(String key) {
    evaluator.addAccumulator(key);
  }

  @Override
  public void updateAccumulator(String key, NDList labels, NDList predictions) {
    updateAccumulators(new String[] {key}, labels, predictions);
  }

  @Override
  public void updateAccumulators(String[] keys, NDList labels, NDList predictions) {
    String[] withBatch = Arrays.copyOf(keys, keys.length + 1);
    withBatch[keys.length] = BATCH;
    evaluator.resetAccumulator(BATCH);
    evaluator.updateAccumulators(withBatch, labels, predictions); // which evaluates only once
    float value = evaluator.getAccumulator(BATCH);
    if (Float.isNaN(value) && !(evaluator instanceof Loss)) {
      return; // it found nothing to count
    }
    Shape shape = labels.head().getShape();
    long count = shape.dimension() == 0 ? 1 : shape.get(0);
    for (String stage : Metrics.STAGES) {
      if (Arrays.asList(keys).contains(stage)) {
        sums.merge(stage, (double) value * count, Double::sum);
        rows.merge(stage, count, Long::sum);
      }
    }
  }

  @Override
  public void resetAccumulator(String key) {
    if (key.equals(Metrics.STAGES[0])) {
      onReset.run();
    }
    evaluator.resetAccumulator(key);
  }

  @Override
  public float getAccumulator(String key) {
    return evaluator.getAccumulator(key);
  }
}

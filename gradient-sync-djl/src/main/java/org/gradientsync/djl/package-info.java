/**
 * Data-parallel training with Deep Java Library.
 *
 * <p>{@link DataParallel} is all that a training needs: a listener, which gives each rank its own
 * rows, lets all replicas begin with rank 0's parameters, averages the gradients between the
 * backward pass and the step, and merges the metrics of an epoch. {@link RankEvaluator} makes an
 * evaluator's values those of all ranks.
 *
 * <p>Inside, {@link Replicas} is this rank's copy of the model, and {@link Gradients} a way to
 * average: {@link GpuGradients} where they are, {@link HostGradients} after moving them into the
 * buckets, and {@link CopiedGradients} through a copy. {@link Metrics} and {@link Saving} are for
 * what only one rank should print and write. {@link ElasticCalls} makes all calls that need other
 * ranks, and goes on without those that are lost.
 */
package org.gradientsync.djl;

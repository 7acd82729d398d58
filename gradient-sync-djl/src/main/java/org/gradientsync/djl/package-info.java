/**
 * Data-parallel training with Deep Java Library.
 *
 * <p>{@link org.gradientsync.djl.DataParallel} is all that a training needs: a listener, which
 * gives each rank its own rows, lets all replicas begin with rank 0's parameters, averages the
 * gradients between the backward pass and the step, and merges the metrics of an epoch. {@link
 * org.gradientsync.djl.RankEvaluator} makes an evaluator's values those of all ranks.
 *
 * <p>Inside, {@link org.gradientsync.djl.Replicas} is this rank's copy of the model, and {@link
 * org.gradientsync.djl.Gradients} a way to average: {@link org.gradientsync.djl.GpuGradients} where
 * they are, {@link org.gradientsync.djl.HostGradients} after moving them into the buckets, and
 * {@link org.gradientsync.djl.CopiedGradients} through a copy. {@link org.gradientsync.djl.Metrics}
 * and {@link org.gradientsync.djl.Saving} are for what only one rank should print and write. {@link
 * org.gradientsync.djl.ElasticCalls} makes all calls that need other ranks, and goes on without
 * those that are lost.
 */
package org.gradientsync.djl;

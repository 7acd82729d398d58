/**
 * Gradients in buckets, and the thread that averages them during the backward pass.
 *
 * <p>A {@link org.gradientsync.core.buckets.BucketsBuilder} lays the parameters out: a {@link
 * org.gradientsync.core.buckets.BucketLayout} decides which gradients share a {@link
 * org.gradientsync.core.buckets.Bucket}, in the reverse of their order. GradientBucketsImpl is what
 * the program holds. {@link org.gradientsync.core.buckets.Readiness} knows which gradients are
 * there, and StepState where in a step the program is. StepAverages starts the averages of full
 * buckets in order, and awaits them.
 *
 * <p>A full bucket goes to the {@link org.gradientsync.core.buckets.CommunicationThread} if the
 * reducer blocks the host, and otherwise to a stream of its own, {@link
 * org.gradientsync.core.buckets.BucketStreams}. A {@link org.gradientsync.core.buckets.BucketSync}
 * makes the calls for a {@link org.gradientsync.core.buckets.BucketSet}. With sharded buckets, a
 * {@link org.gradientsync.core.buckets.BucketShard} is this rank's part, and {@link
 * org.gradientsync.core.buckets.ShardedState} the optimizer's state of it. With a hook, BucketHooks
 * calls it in place of an average, with a sync of its own, and a HookedBucket is what it sees.
 *
 * <p>The average of the last bucket carries the {@link org.gradientsync.core.buckets.StepFlags}, by
 * which all ranks know who has data, who has which gradient, and who was asked to stop;
 * Contributions says what follows from them. {@link org.gradientsync.core.buckets.AverageChecks}
 * looks for values that are not finite.
 */
package org.gradientsync.core.buckets;

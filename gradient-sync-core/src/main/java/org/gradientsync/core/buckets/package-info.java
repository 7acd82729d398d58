/**
 * Gradients in buckets, and the thread that averages them during the backward pass.
 *
 * <p>A {@link BucketsBuilder} lays the parameters out: a {@link BucketLayout} decides which
 * gradients share a {@link Bucket}, in the reverse of their order. GradientBucketsImpl is what the
 * program holds. {@link Readiness} knows which gradients are there, and StepState where in a step
 * the program is. StepAverages starts the averages of full buckets in order, and awaits them.
 *
 * <p>A full bucket goes to the {@link CommunicationThread} if the reducer blocks the host, and
 * otherwise to a stream of its own, {@link BucketStreams}. A {@link BucketSync} makes the calls for
 * a {@link BucketSet}. With sharded buckets, a {@link BucketShard} is this rank's part, and {@link
 * ShardedState} the optimizer's state of it. With a hook, BucketHooks calls it in place of an
 * average, with a sync of its own, and a HookedBucket is what it sees.
 *
 * <p>The average of the last bucket carries the {@link StepFlags}, by which all ranks know who has
 * data, who has which gradient, and who was asked to stop; Contributions says what follows from
 * them. {@link AverageChecks} looks for values that are not finite.
 */
package org.gradientsync.core.buckets;

/**
 * Hooks for {@link org.gradientsync.GradientBuckets} that send less than an average does.
 *
 * <p>{@link org.gradientsync.hooks.PowerSgd} sends two thin matrices for each gradient. {@link
 * org.gradientsync.hooks.TopK} sends the elements of the largest magnitude. Both keep what they
 * have not sent and add it to the next step's gradient (error feedback), so that nothing is lost,
 * only late. What they share, the count of bytes and the state for checkpoints, is in {@link
 * org.gradientsync.hooks.Compression}.
 *
 * <p>The result is not the average of the step, so compare losses. It pays off where ranks wait for
 * averages and links are slow: compressing takes time, too. Both compute in Java, in double.
 * Gradients on a GPU are copied to the host and back, and the calling thread waits for that; there
 * the hooks have not been measured.
 *
 * <p>All ranks get the same bits: what they exchange is the same everywhere, and Java computes with
 * it in one order. To write another hook, implement {@link org.gradientsync.BucketHook}.
 */
package org.gradientsync.hooks;

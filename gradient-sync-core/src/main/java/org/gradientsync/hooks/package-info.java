/**
 * Hooks for {@link org.gradientsync.GradientBuckets} that send less than an average does.
 *
 * <p>{@link PowerSgd} sends two thin matrices for each gradient. {@link TopK} sends the elements of
 * the largest magnitude. Both keep what they have not sent and add it to the next step's gradient
 * (error feedback), so that nothing is lost, only late. What they share, the count of bytes and the
 * state for checkpoints, is in {@link Compression}.
 *
 * <p>The result is not the average of the step, so compare losses. It pays off where ranks wait for
 * averages and links are slow: compressing takes time, too. PowerSGD multiplies where the gradients
 * are, on a GPU with cuBLAS in the gradients' precision, in host memory with Java in double; only
 * the thin matrices are copied between a GPU and the host. Top-k computes in Java, so it copies all
 * gradients to the host and back. With both the calling thread waits for averages.
 *
 * <p>All ranks get the same bits: what they exchange is the same everywhere, and each computes with
 * it in one order; ranks whose GPUs or versions of cuBLAS differ let Java do that. To write another
 * hook, implement {@link org.gradientsync.BucketHook}.
 */
package org.gradientsync.hooks;

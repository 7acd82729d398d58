/**
 * Averages gradients over ranks: what training code imports.
 *
 * <p>Begin with {@link org.gradientsync.GradientSync}: one object for each rank, which averages,
 * reduces, gathers and broadcasts. It finds the job that this process belongs to, the device, and
 * the fastest way between the ranks. Gradients are in a {@link org.gradientsync.DeviceBuffer},
 * whose elements have a {@link org.gradientsync.DataType}; {@link org.gradientsync.Device}, {@link
 * org.gradientsync.Stream} and {@link org.gradientsync.Event} say where its memory is and in which
 * order work is done.
 *
 * <p>Training loops use {@link org.gradientsync.GradientBuckets}: it places the gradients of a
 * model's {@link org.gradientsync.Parameter}s into buckets, and averages full ones during the
 * backward pass. {@link org.gradientsync.LossScaler} is for gradients of 16 bits.
 *
 * <p>{@link org.gradientsync.Communicator} is for small amounts of host memory: who takes part,
 * barriers, numbers, texts.
 *
 * <p>{@link org.gradientsync.ReduceOp} and {@link org.gradientsync.SumOrder} define the bits of a
 * result. {@link org.gradientsync.Float16} and {@link org.gradientsync.BFloat16} convert elements
 * of 16 bits.
 *
 * <p>Failures are a {@link org.gradientsync.GradientSyncException}: {@link
 * org.gradientsync.MismatchedCallException} if the ranks' calls differ, {@link
 * org.gradientsync.RankLostException} if one did not come, {@link
 * org.gradientsync.NotFiniteException} for a NaN, {@link org.gradientsync.DeviceException} for a
 * driver's error, and {@link org.gradientsync.UnavailableException} if something does not work
 * here. No failure leaves a rank waiting.
 *
 * <p>{@link org.gradientsync.Synchronization} has the times of a reduction. Backends implement
 * {@link org.gradientsync.spi}.
 */
package org.gradientsync;

/**
 * Averages gradients over ranks: what training code imports.
 *
 * <p>Begin with {@link GradientSync}: one object for each rank, which averages, reduces, gathers
 * and broadcasts. It finds the job that this process belongs to, the device, and the fastest way
 * between the ranks. Gradients are in a {@link DeviceBuffer}, whose elements have a {@link
 * DataType}; {@link Device}, {@link Stream} and {@link Event} say where its memory is and in which
 * order work is done.
 *
 * <p>Training loops use {@link GradientBuckets}: it places the gradients of a model's {@link
 * Parameter}s into buckets, and averages full ones during the backward pass. {@link LossScaler} is
 * for gradients of 16 bits.
 *
 * <p>{@link Communicator} is for small amounts of host memory: ranks, barriers, numbers, texts.
 *
 * <p>{@link ReduceOp} and {@link SumOrder} define the bits of a result. {@link Float16} and {@link
 * BFloat16} convert elements of 16 bits.
 *
 * <p>Failures are a {@link GradientSyncException}: {@link MismatchedCallException} if the ranks'
 * calls differ, {@link RankLostException} if one did not come, {@link NotFiniteException} for a
 * NaN, {@link DeviceException} for a driver's error, and {@link UnavailableException} if something
 * does not work here. No failure leaves a rank waiting.
 *
 * <p>In the words of NCCL and MPI, a sync is a communicator with a device and a default stream; a
 * reducer is what makes all of its collectives, as NCCL and an MPI are two; a rendezvous is the
 * comparison of the ranks' calls before data moves. Local ranks are those of a node.
 *
 * <p>{@link Synchronization} has the times of a reduction. Backends implement {@link
 * org.gradientsync.spi}.
 */
package org.gradientsync;

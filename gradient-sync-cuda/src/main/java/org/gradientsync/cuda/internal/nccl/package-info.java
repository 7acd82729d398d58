/**
 * The reducer {@code nccl}: NVIDIA's library, for sums in any order, or when the program names it.
 *
 * <p>{@link org.gradientsync.cuda.internal.nccl.NcclLibrary} finds {@code libnccl.so.2}, with
 * {@link org.gradientsync.cuda.internal.nccl.NcclFiles} where PyTorch has one, and {@link
 * org.gradientsync.cuda.internal.nccl.JnaNccl} calls it. {@link
 * org.gradientsync.cuda.internal.nccl.NcclStart} creates an {@link
 * org.gradientsync.cuda.internal.nccl.NcclComm} on a thread of its own, because NCCL waits for all
 * ranks without a time-out.
 *
 * <p>{@link org.gradientsync.cuda.internal.nccl.NcclReducer} lets the ranks compare each call, and
 * then enqueues it with {@link org.gradientsync.cuda.internal.nccl.NcclCollectives}. {@link
 * org.gradientsync.cuda.internal.nccl.NcclProgress} lists what is enqueued, and {@link
 * org.gradientsync.cuda.internal.nccl.NcclWatchdog} aborts the communicator when a call cannot end
 * any more, so that a lost rank ends in an exception here, too. {@link
 * org.gradientsync.cuda.internal.nccl.NcclResult} and {@link
 * org.gradientsync.cuda.internal.nccl.NcclCodes} translate codes.
 */
package org.gradientsync.cuda.internal.nccl;

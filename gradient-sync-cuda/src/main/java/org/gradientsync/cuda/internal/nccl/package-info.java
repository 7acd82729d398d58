/**
 * The reducer {@code nccl}: NVIDIA's library, for sums in any order, or when the program names it.
 *
 * <p>{@link NcclLibrary} finds {@code libnccl.so.2}, with {@link NcclFiles} where PyTorch has one,
 * and {@link JnaNccl} calls it. {@link NcclStart} creates an {@link NcclComm} on a thread of its
 * own, because NCCL waits for all ranks without a time-out.
 *
 * <p>{@link NcclReducer} lets the ranks compare each call, and then enqueues it with {@link
 * NcclCollectives}. {@link NcclProgress} lists what is enqueued, and {@link NcclWatchdog} aborts
 * the communicator when a call cannot end any more, so that a lost rank ends in an exception here,
 * too. {@link NcclResult} and {@link NcclCodes} translate codes.
 */
package org.gradientsync.cuda.internal.nccl;

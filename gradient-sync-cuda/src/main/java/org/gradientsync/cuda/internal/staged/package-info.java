/**
 * The reducer {@code host-staged}: GPU memory by way of page-locked host memory. It works with
 * every GPU and every launcher.
 *
 * <p>{@link HostStagedReducer} chooses by call and size. {@link StagedOnGpu} is for large buffers
 * of ranks on one node: each GPU copies its elements down into memory that all ranks share, and
 * adds its shard with a kernel that reads the host's memory. {@link StagedOnHost} is for small
 * buffers, and for several nodes: chunks go down, a reducer of host memory reduces them, and they
 * go up, each step beside the next chunk's. {@link StagedTransfers} does the same for collectives
 * with an input and an output, and for messages.
 *
 * <p>{@link HostStagedReducerProvider} creates it on all ranks or on none.
 */
package org.gradientsync.cuda.internal.staged;

/**
 * Collectives of processes of one node, which read each other's memory in {@code /dev/shm}.
 *
 * <p>{@link org.gradientsync.core.collectives.shared.SharedMemoryReducer} has a {@link
 * org.gradientsync.core.collectives.shared.SharedPlan} for each call. {@link
 * org.gradientsync.core.collectives.shared.SharedAllReduce} reduces a shard straight from all
 * ranks' buffers, and copies the other shards from their owners; {@link
 * org.gradientsync.core.collectives.shared.SharedReads} do the rest. What is small travels with the
 * calls, in a {@link org.gradientsync.core.collectives.messages.CarriedTransfer}.
 *
 * <p>{@link org.gradientsync.core.collectives.shared.NodeBuffers} maps the others' buffers once,
 * and {@link org.gradientsync.core.collectives.shared.NodeMates} knows which ranks of a group share
 * the node. A larger buffer that is not in a shared file, because the program allocated it, goes by
 * messages.
 *
 * <p>{@link org.gradientsync.core.collectives.shared.SharedMemoryReducerProvider} provides it where
 * all ranks can map each other's files.
 */
package org.gradientsync.core.collectives.shared;

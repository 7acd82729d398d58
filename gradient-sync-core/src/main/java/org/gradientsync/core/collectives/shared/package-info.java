/**
 * Collectives of processes of one node, which read each other's memory in {@code /dev/shm}.
 *
 * <p>{@link SharedMemoryReducer} has a {@link SharedPlan} for each call. {@link SharedAllReduce}
 * reduces a shard straight from all ranks' buffers, and copies the other shards from their owners;
 * {@link SharedReads} do the rest. What is small travels with the calls, in a {@link
 * org.gradientsync.core.collectives.messages.CarriedTransfer}.
 *
 * <p>{@link NodeBuffers} maps the others' buffers once, and {@link NodeRanks} knows which ranks of
 * a group share the node. A larger buffer that is not in a shared file, because the program
 * allocated it, goes by messages.
 *
 * <p>{@link SharedMemoryReducerProvider} provides it where all ranks can map each other's files.
 */
package org.gradientsync.core.collectives.shared;

/**
 * Collectives of processes of one node, which read each other's memory in {@code /dev/shm}.
 *
 * <p>{@link SharedMemoryReducer} has a {@link SharedPlan} for each call. {@link SharedAllReduce}
 * reduces a shard straight from all ranks' buffers, and copies the other shards from their owners;
 * a {@link org.gradientsync.core.collectives.messages.BlockReads} does the rest. What is small
 * travels with the calls, in a {@link org.gradientsync.core.collectives.messages.CarriedTransfer}.
 *
 * <p>A call uses up to three counters of the {@link
 * org.gradientsync.core.rendezvous.SharedMemoryRendezvous}. Each rank announces where its buffer
 * lies and sets ARRIVED. In an all-reduce, the owner of a shard sets REDUCED when the others may
 * copy it. A rank that reads no more sets DONE, and returns when all others have.
 *
 * <p>{@link NodeBuffers} maps the others' buffers once, and {@link NodeRanks} knows which ranks of
 * a group share the node. A larger buffer that is not in a shared file, because the program
 * allocated it, goes by messages.
 *
 * <p>{@link SharedMemoryReducerProvider} provides it where all ranks can map each other's files.
 */
package org.gradientsync.core.collectives.shared;

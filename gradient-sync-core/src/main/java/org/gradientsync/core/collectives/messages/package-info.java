/**
 * Collectives by messages between pairs of ranks, for every transport.
 *
 * <p>{@link MessageReducer} meets the other ranks and runs a {@link Plan}: {@link AllReducePlan}
 * for all-reduces, {@link ReduceScatterPlan} for what is reduced into a block, {@link
 * BroadcastPlan} for broadcasts, and {@link TransferPlan} for what only moves. {@link Shards} says
 * which elements a rank owns, {@link BufferMessages} makes messages of runs of elements. On several
 * nodes, {@link CarriedAllReduce} adds small contributions that travel with the calls themselves,
 * and {@link NodeSums} sums of them that do so in any order; {@link CarriedTransfer} does other
 * small collectives, by the {@link BlockReads} that processes of one node use, too.
 *
 * <p>{@link GroupCommunicator} is the communicator of every backend. It reduces by the same plans;
 * {@link HostTransfers} move Java buffers.
 *
 * <p>{@link RendezvousChoice} decides how ranks compare their calls whose reducer does not say it:
 * in shared memory, by one rank of each node, or by messages.
 */
package org.gradientsync.core.collectives.messages;

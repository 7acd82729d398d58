/**
 * Collectives by messages between pairs of ranks, for every transport.
 *
 * <p>{@link org.gradientsync.core.collectives.messages.MessageReducer} meets the other ranks and
 * runs a {@link org.gradientsync.core.collectives.messages.Plan}: {@link
 * org.gradientsync.core.collectives.messages.AllReducePlan} for all-reduces, {@link
 * org.gradientsync.core.collectives.messages.ReduceScatterPlan} for what is reduced into a block,
 * {@link org.gradientsync.core.collectives.messages.BroadcastPlan} for broadcasts, and {@link
 * org.gradientsync.core.collectives.messages.TransferPlan} for what only moves. {@link
 * org.gradientsync.core.collectives.messages.Shards} says which elements a rank owns, {@link
 * org.gradientsync.core.collectives.messages.BufferMessages} makes messages of runs of elements. On
 * several nodes, {@link org.gradientsync.core.collectives.messages.CarriedAllReduce} adds small
 * contributions that travel with the calls themselves, and {@link
 * org.gradientsync.core.collectives.messages.NodeSums} sums of them that do so in any order; {@link
 * org.gradientsync.core.collectives.messages.CarriedTransfer} does other small collectives, by the
 * {@link org.gradientsync.core.collectives.messages.BlockReads} that processes of one node use,
 * too.
 *
 * <p>{@link org.gradientsync.core.collectives.messages.GroupCommunicator} is the communicator of
 * every backend. It reduces by the same plans; {@link
 * org.gradientsync.core.collectives.messages.HostTransfers} move Java buffers.
 *
 * <p>{@link org.gradientsync.core.collectives.messages.RendezvousChoice} decides how ranks compare
 * their calls whose reducer does not say it: in shared memory, by one rank of each node, or by
 * messages.
 */
package org.gradientsync.core.collectives.messages;

/**
 * Collectives on several nodes: within a node in memory, between nodes by messages of few ranks.
 *
 * <p>{@link org.gradientsync.core.collectives.nodes.TwoLevelReducer} is for host memory. {@link
 * org.gradientsync.core.collectives.nodes.TwoLevelSizes} decide which algorithm a buffer takes.
 * {@link org.gradientsync.core.collectives.nodes.CarrierPlan} is what they have in common: each
 * rank of a node carries a shard. {@link org.gradientsync.core.collectives.nodes.TwoLevelRanks} are
 * these ranks.
 *
 * <p>A {@link org.gradientsync.core.collectives.nodes.RunningSum} says which rank adds what, and
 * when: each node adds its ranks' elements to the sum of the nodes before, in rank order, and
 * passes it on in chunks; a {@link org.gradientsync.core.collectives.nodes.ChunkOrder} lets all
 * nodes work at the same time. A {@link org.gradientsync.core.collectives.nodes.SumPlan} has its
 * messages and its memory: {@link org.gradientsync.core.collectives.nodes.RunningSumPlan} for an
 * all-reduce, {@link org.gradientsync.core.collectives.nodes.ScatteredSumPlan} for a
 * reduce-scatter.
 *
 * <p>Smaller buffers are divided into {@link org.gradientsync.core.collectives.nodes.Blocks}, one
 * for each node, by a {@link org.gradientsync.core.collectives.nodes.BlocksPlan} in the order of
 * {@link org.gradientsync.core.collectives.nodes.ColumnSteps}. In rank order, the owners get all
 * contributions by {@link org.gradientsync.core.collectives.nodes.ExchangeRounds} of an {@link
 * org.gradientsync.core.collectives.nodes.ExchangePlan}; in any order, sums by {@link
 * org.gradientsync.core.collectives.nodes.HalvingRounds} of a {@link
 * org.gradientsync.core.collectives.nodes.HalvingPlan}.
 *
 * <p>What only moves, and in any order the node sums of small buffers of few nodes, goes between
 * ranks with the same number on their nodes, as a {@link
 * org.gradientsync.core.collectives.nodes.RailPlan} says: {@link
 * org.gradientsync.core.collectives.nodes.AllGatherPlan}, {@link
 * org.gradientsync.core.collectives.nodes.AllToAllPlan}, and {@link
 * org.gradientsync.core.collectives.nodes.DirectSumsPlan}.
 *
 * <p>{@link org.gradientsync.core.collectives.nodes.TwoLevelGpuReducer} is for GPUs. It is made of
 * two other reducers, that of a node's ranks and one that carries messages between the ranks with
 * the same local number. {@link org.gradientsync.core.collectives.nodes.TwoLevelGpuPlan} has the
 * algorithm, a {@link org.gradientsync.core.collectives.nodes.TwoLevelGpuSteps} the steps of one
 * rank.
 *
 * <p>{@link org.gradientsync.core.collectives.nodes.TwoLevelReducerProvider} provides the first;
 * the second is made of selections, so its provider is in {@link org.gradientsync.core.selection}.
 */
package org.gradientsync.core.collectives.nodes;

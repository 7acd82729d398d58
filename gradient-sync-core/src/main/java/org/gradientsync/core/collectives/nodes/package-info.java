/**
 * Collectives on several nodes: within a node in memory, between nodes by messages of few ranks.
 *
 * <p>{@link TwoLevelReducer} is for host memory. {@link TwoLevelSizes} decide which algorithm a
 * buffer takes. {@link CarrierPlan} is what they have in common: each rank of a node carries a
 * shard. {@link TwoLevelRanks} are these ranks.
 *
 * <p>A {@link RunningSum} says which rank adds what, and when: each node adds its ranks' elements
 * to the sum of the nodes before, in rank order, and passes it on in chunks; a {@link ChunkOrder}
 * lets all nodes work at the same time. A {@link SumPlan} has its messages and its memory: {@link
 * RunningSumPlan} for an all-reduce, whose results return along {@link ResultTrees}, {@link
 * ScatteredSumPlan} for a reduce-scatter.
 *
 * <p>Smaller buffers are divided into {@link Blocks}, one for each node, by a {@link BlocksPlan} in
 * the order of {@link ColumnSteps}. In rank order, the owners get all contributions by {@link
 * ExchangeRounds} of an {@link ExchangePlan}; in any order, sums by {@link HalvingRounds} of a
 * {@link HalvingPlan}. A small reduce-scatter ends there, as does an all-to-all on many nodes,
 * which adds nothing.
 *
 * <p>What only moves, and in any order the node sums of small buffers of few nodes, goes between
 * ranks with the same number on their nodes, as a {@link PairwisePlan} says: {@link AllGatherPlan},
 * {@link AllToAllPlan}, and {@link DirectSumsPlan}. A {@link GatherRoundsPlan} gathers the small
 * blocks of many nodes in rounds. A {@link BroadcastTreesPlan} sends along {@link ResultTrees},
 * too.
 *
 * <p>{@link TwoLevelGpuReducer} is for GPUs. It is made of two other reducers, that of a node's
 * ranks and one that carries messages between the ranks with the same local number. {@link
 * TwoLevelGpuPlan} has the algorithm, a {@link TwoLevelGpuSteps} the steps of one rank.
 *
 * <p>{@link TwoLevelReducerProvider} provides the first; the second is made of selections, so its
 * provider is in {@link org.gradientsync.core.selection}.
 */
package org.gradientsync.core.collectives.nodes;

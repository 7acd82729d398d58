/**
 * One rank's sync, where each call begins: in {@link SyncCalls}.
 *
 * <p>{@link CoreSyncProvider} is found by the API and gives a {@link SyncBuilder}, which lets
 * {@link org.gradientsync.core.selection} choose the group, the device and the reducer, and creates
 * a {@link GradientSyncImpl}, which begins, splits and ends a sync.
 *
 * <p>{@link CallOrder} lets one call of the program run after the other. {@link CallRunner} makes
 * it a {@link org.gradientsync.spi.CollectiveCall}, checks it with {@link CollectiveArguments}, and
 * hands it to the reducer. It sets the same object again for each call, so nothing is allocated.
 *
 * <p>Some calls are made of others. {@link UnequalBlocks} makes messages and reductions of a call
 * whose blocks differ in length. {@link ArrayAverages} averages the program's arrays by way of
 * {@link KeptBuffers}, and {@link SparseAverages} the rows of a table that any rank has, which
 * {@link RowUnion} finds. {@link PendingAverages} run in the background.
 *
 * <p>{@link CallGroup} collects the calls of a {@code grouped} block and runs them at once; {@link
 * CallGroups} keeps those that come again. {@link StopSignals} asks syncs to stop when the process
 * gets a signal. {@link Succession} puts a sync of other ranks in the place of one that has lost
 * some, or that others join; {@link Admission} is what an elastic training asks for.
 */
package org.gradientsync.core.sync;

/**
 * One rank's sync, where each call begins: in {@link org.gradientsync.core.sync.SyncCalls}.
 *
 * <p>{@link org.gradientsync.core.sync.CoreSyncProvider} is found by the API and gives a {@link
 * org.gradientsync.core.sync.SyncBuilder}, which lets {@link org.gradientsync.core.selection}
 * choose the group, the device and the reducer, and creates a {@link
 * org.gradientsync.core.sync.GradientSyncImpl}. What is made for that choice is a {@link
 * org.gradientsync.core.sync.ChosenSync}.
 *
 * <p>{@link org.gradientsync.core.sync.CallOrder} lets one call of the program run after the other.
 * {@link org.gradientsync.core.sync.CallRunner} makes it a {@link
 * org.gradientsync.spi.CollectiveCall}, checks it with {@link
 * org.gradientsync.core.sync.CollectiveArguments}, and hands it to the reducer. It sets the same
 * object again for each call, so nothing is allocated.
 *
 * <p>Some calls are made of others. {@link org.gradientsync.core.sync.UnequalBlocks} makes messages
 * and reductions of a call whose blocks differ in length. {@link
 * org.gradientsync.core.sync.ArrayAverages} averages the program's arrays by way of {@link
 * org.gradientsync.core.sync.KeptBuffers}, and {@link org.gradientsync.core.sync.SparseAverages}
 * the rows of a table that any rank has, which {@link org.gradientsync.core.sync.RowUnion} finds.
 * {@link org.gradientsync.core.sync.PendingAverages} run in the background.
 *
 * <p>{@link org.gradientsync.core.sync.CallGroup} collects the calls of a {@code grouped} block and
 * runs them at once; {@link org.gradientsync.core.sync.CallGroups} keeps those that come again.
 * {@link org.gradientsync.core.sync.StopSignals} asks syncs to stop when the process gets a signal.
 * {@link org.gradientsync.core.sync.Succession} puts a sync of other ranks in the place of one that
 * has lost some, or that others join; {@link org.gradientsync.core.sync.Admission} is what an
 * elastic training asks for.
 */
package org.gradientsync.core.sync;

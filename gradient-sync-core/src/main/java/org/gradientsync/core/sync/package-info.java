/**
 * One rank's sync: the first room of a call's way.
 *
 * <p>{@link org.gradientsync.core.sync.CoreSyncProvider} is found by the API and gives a {@link
 * org.gradientsync.core.sync.SyncBuilder}, which lets {@link org.gradientsync.core.selection}
 * choose the group, the device and the reducer, and creates a {@link
 * org.gradientsync.core.sync.GradientSyncImpl}.
 *
 * <p>{@link org.gradientsync.core.sync.GradientSyncImpl} checks a call's arguments, with {@link
 * org.gradientsync.core.sync.CollectiveArguments} those with an input and an output, makes it a
 * {@link org.gradientsync.spi.CollectiveCall}, runs one call after the other, and hands each to the
 * reducer. It sets the same object again for each call, so nothing is allocated.
 *
 * <p>{@link org.gradientsync.core.sync.ArrayAverages} averages the program's arrays by way of
 * buffers that it keeps. {@link org.gradientsync.core.sync.CallGroup} collects the calls of a
 * {@code grouped} block and runs them at once; {@link org.gradientsync.core.sync.CallGroups} keeps
 * those that come again.
 */
package org.gradientsync.core.sync;

/**
 * What every backend must do, as tests. A backend extends the classes and gives a {@link
 * org.gradientsync.test.contract.RankRunner} that starts its ranks: {@link
 * org.gradientsync.test.contract.LocalRunner} threads, {@link
 * org.gradientsync.test.contract.ThreadRunner} threads which a backend joins, {@link
 * org.gradientsync.test.contract.ProcessRunner} processes ({@link
 * org.gradientsync.test.contract.RankTests}).
 *
 * <p>{@link org.gradientsync.test.contract.ReducerContract} tests a reducer, above all its bits,
 * and {@link org.gradientsync.test.contract.AveragesContract} averages of arrays. {@link
 * org.gradientsync.test.contract.CollectivesContract}, {@link
 * org.gradientsync.test.contract.GroupedCallsContract} and {@link
 * org.gradientsync.test.contract.GroupsContract} test other collectives, calls in groups and parts
 * of a sync; {@link org.gradientsync.test.contract.CompressionContract} the wire types. {@link
 * org.gradientsync.test.contract.CommunicatorContract} tests the control plane, {@link
 * org.gradientsync.test.contract.DeviceBufferContract} a device's memory, {@link
 * org.gradientsync.test.contract.DeadlockContract} that ranks that wait for each other are found.
 *
 * <p>{@link org.gradientsync.test.contract.BucketsContract}, {@link
 * org.gradientsync.test.contract.ShardedContract} and {@link
 * org.gradientsync.test.contract.HookContract} test buckets on a backend. {@link
 * org.gradientsync.test.contract.SoakContract} makes random calls for some time, those of {@link
 * org.gradientsync.test.contract.SoakCollectives}, {@link
 * org.gradientsync.test.contract.SoakCommunicator} and {@link
 * org.gradientsync.test.contract.SoakBuckets}.
 *
 * <p>{@link org.gradientsync.test.contract.Numbers} has data that differ by rank and index, and the
 * expected results; {@link org.gradientsync.test.contract.Doubles} reads elements of any type.
 */
package org.gradientsync.test.contract;

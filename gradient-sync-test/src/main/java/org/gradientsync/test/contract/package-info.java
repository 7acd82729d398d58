/**
 * What every backend must do, as tests. A backend extends the classes and gives a {@link
 * RankRunner} that starts its ranks: {@link LocalRunner} threads, {@link ThreadRunner} threads
 * which a backend joins, {@link ProcessRunner} processes ({@link RankTests}).
 *
 * <p>{@link ReducerContract} tests a reducer, above all its bits, and {@link AveragesContract}
 * averages of arrays. {@link CollectivesContract}, {@link GroupedCallsContract} and {@link
 * GroupsContract} test other collectives, calls in groups and parts of a sync; {@link
 * CompressionContract} the wire types. {@link CommunicatorContract} tests the control plane, {@link
 * DeviceBufferContract} a device's memory, {@link DeadlockContract} that ranks that wait for each
 * other are found, {@link TwoNodesContract} what ranks on two nodes see.
 *
 * <p>{@link BucketsContract}, {@link ShardedContract} and {@link HookContract} test buckets on a
 * backend. {@link SoakContract} makes random calls for some time, those of {@link SoakCollectives},
 * {@link SoakCommunicator} and {@link SoakBuckets}.
 *
 * <p>{@link Numbers} has data that differ by rank and index, and the expected results; {@link
 * Doubles} reads elements of any type.
 */
package org.gradientsync.test.contract;

/**
 * Finds the launcher, the device and the reducer, and lets all ranks agree on them.
 *
 * <p>{@link Selection} asks each launcher whether it has started this process, splits the sync's
 * group from all ranks, and then lets the ranks choose a device and a reducer. In a {@link
 * JointChoice} they exchange what each can use, and take the one of the highest priority that all
 * can use. So all ranks choose the same, or all throw with the same reasons. A setting names one
 * instead. {@link DevicePlaces} gives each rank of a node a device of its own.
 *
 * <p>{@link Providers} looks for launchers, devices and reducers with {@link
 * java.util.ServiceLoader} in every place where a program may have them, and names the module that
 * is missing. {@link UnknownSettings} warns of settings that nobody reads.
 *
 * <p>{@link TwoLevelGpuReducerProvider} makes the reducer for GPUs of several nodes out of two
 * selections, each with {@link OwnParts}: the node's ranks, and those with the same local rank on
 * all nodes.
 */
package org.gradientsync.core.selection;

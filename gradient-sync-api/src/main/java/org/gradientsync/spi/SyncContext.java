package org.gradientsync.spi;

import org.gradientsync.collective.Group;

/**
 * What one rank's sync has when it looks for a reducer.
 *
 * @param group the ranks, and the comparing of their calls; {@link Group#transport()} leads to the
 *     backend
 * @param device this rank's device
 * @param settings what the user asked for
 */
public record SyncContext(Group group, BackendDevice device, Settings settings) {}

package org.gradientsync.spi;

import org.gradientsync.Communicator;

/**
 * The parts of one rank's sync from which a reducer is created.
 *
 * @param group the sync's ranks; {@link RankGroup#transport()} leads to the backend
 * @param communicator a communicator of the same ranks, for exchanges while a reducer is created or
 *     a buffer is registered; the reducer must not close it
 * @param device this rank's device
 * @param settings the user's settings; {@link Settings#wire}, {@link Settings#order} and {@link
 *     Settings#finite} are the same on all ranks
 * @param parts the library's own, to build on
 */
public record SyncContext(
    RankGroup group,
    Communicator communicator,
    BackendDevice device,
    Settings settings,
    ReducerParts parts) {}

/**
 * Fault injection, for tests of training code.
 *
 * <p>{@link Faults} plans faults: a rank that is late, that dies, that throws, that asks for
 * something else, or whose gradient has a NaN, each on one rank at one call. A test installs them
 * on the builder of its syncs, {@code LocalRanks.run(2, faults::install, sync -> ...)}, and then
 * checks what its program does: does it end, with which exception, on which ranks?
 *
 * <p>A {@link Fault} happens once. Ranks that are threads die by a {@link RankDiedError}, which no
 * handler should catch; ranks that are processes are killed.
 */
package org.gradientsync.test.faults;

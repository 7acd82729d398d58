/**
 * The command {@code gradient-sync}.
 *
 * <p>{@code GradientSyncCommand} has the programs as subcommands: {@link
 * org.gradientsync.tools.run}, which starts the ranks of a job, is always there. It finds others
 * with {@link java.util.ServiceLoader}: those of the module {@code tools} that check an
 * installation ({@code doctor}), time collectives ({@code perf}), and measure links ({@code
 * links}). So {@code run} can be built and used without a GPU and without an MPI.
 *
 * <p>All are {@link org.gradientsync.tools.program}s.
 */
package org.gradientsync.tools;

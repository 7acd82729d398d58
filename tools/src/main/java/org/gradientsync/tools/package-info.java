/**
 * The command {@code gradient-sync} and its subcommands. {@code .run} starts jobs, {@code .doctor},
 * {@code .perf} and {@code .links} examine machines, and {@code .program} is what programs have in
 * common.
 */
package org.gradientsync.tools;

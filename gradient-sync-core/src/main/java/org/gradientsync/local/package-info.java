/**
 * The embedded backend: ranks are threads of one JVM.
 *
 * <p>{@link LocalRanks} runs a task on each of several ranks and returns when all have ended, or
 * throws what the first one that failed has thrown. Nothing has to be installed or started, so it
 * is the way to test distributed code, and to train on one machine's processors or GPUs from one
 * process.
 *
 * <p>A task gets its rank's {@link org.gradientsync.GradientSync}, the same type as in a process.
 * Its calls block as they do between processes, they throw the same exceptions, and results have
 * the same bits.
 *
 * <p>A rank that ends with an exception ends the others: their pending and later calls throw a
 * {@link org.gradientsync.RankLostException}, and their threads are interrupted. A program that
 * calls {@code System.exit} in one rank gets a warning.
 */
package org.gradientsync.local;

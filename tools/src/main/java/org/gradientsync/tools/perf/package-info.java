/**
 * {@code gradient-sync perf} and {@code perf collectives}: they time collectives of growing size.
 *
 * <p>{@link AllReducePerf} and {@link CollectivesPerf} are the two commands, each a {@link
 * PerfProgram}. A {@link PerfCollective} says what follows from a kind of call: sizes, bandwidths
 * and expected results. A {@link TimedCase} is one of them at one size: it makes the calls, takes
 * their times ({@link PerfResult}), and compares every element with {@link PerfNumbers}. {@link
 * HostCost} measures the thread that calls.
 *
 * <p>{@link PerfTable} prints as NVIDIA's nccl-tests do, {@link PerfJson} writes all rounds, and
 * {@link PerfPlot} draws them, with those of other libraries that {@link Rivals} reads.
 */
package org.gradientsync.tools.perf;

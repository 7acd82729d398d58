/**
 * {@code gradient-sync perf} and {@code perf collectives}: they time collectives of growing size.
 *
 * <p>{@code AllReducePerf} and {@code CollectivesPerf} are the two commands, each a {@code
 * PerfProgram}. A {@code PerfCollective} says what follows from a kind of call: sizes, bandwidths
 * and expected results. A {@code TimedCase} is one of them at one size: it makes the calls, takes
 * their times ({@code PerfResult}), and compares every element with {@code PerfNumbers}. {@code
 * HostCost} measures the thread that calls.
 *
 * <p>{@code PerfTable} prints as NVIDIA's nccl-tests do, {@code PerfJson} writes all rounds, and
 * {@code PerfPlot} draws them, with those of other libraries that {@code Rivals} reads.
 */
package org.gradientsync.tools.perf;

/**
 * {@code gradient-sync links}: measures the links of the GPUs that this process sees.
 *
 * <p>{@link LinkPerf} is the command. {@link LinkMeter} measures each pair of {@link LinkGpu}s, and
 * each with the host, one way and both ways at once: a {@link LinkCopy} is enqueued again and again
 * on a {@link LinkLane}, which takes its time on the GPU.
 *
 * <p>A {@link LinkKind} has the comparable figures of all pairs, so that a slow link stands out,
 * and a {@link LinkReport} shows them as text and as JSON.
 */
package org.gradientsync.tools.links;

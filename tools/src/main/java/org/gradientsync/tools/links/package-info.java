/**
 * {@code gradient-sync links}: measures the links of the GPUs that this process sees.
 *
 * <p>{@code LinkPerf} is the command. {@code LinkMeter} measures each pair of {@code LinkGpu}s, and
 * each with the host, one way and both ways at once: a {@code LinkCopy} is enqueued again and again
 * on a {@code LinkLane}, which takes its time on the GPU.
 *
 * <p>A {@code LinkKind} has the comparable figures of all pairs, so that a slow link stands out,
 * and a {@code LinkReport} shows them as text and as JSON.
 */
package org.gradientsync.tools.links;

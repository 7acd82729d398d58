package org.gradientsync;

/**
 * What one reduction over the ranks took, as {@link GradientSync#observe} tells it. Times are
 * milliseconds by the device's clock: on a GPU what the GPU needed, not what the host waited.
 *
 * @param sequence this sync's number of the call, from 1
 * @param bucket the bucket of {@link GradientBuckets}, from 0, or -1 for a call of the sync
 * @param op the reduction
 * @param type the element type
 * @param bytes the size of the buffer
 * @param reducer the reducer's name
 * @param startedAt when the reduction began, since the moment that {@link GradientSync#observe}
 *     returned
 * @param queued how long the data had been ready before that
 * @param duration how long it took, with the waiting for other ranks
 * @param exposed how much of it the stream that computes had to wait: 0 to duration, and all of it
 *     but for buckets that are averaged under the backward pass
 */
public record Synchronization(
    long sequence,
    int bucket,
    ReduceOp op,
    DataType type,
    long bytes,
    String reducer,
    double startedAt,
    double queued,
    double duration,
    double exposed) {}

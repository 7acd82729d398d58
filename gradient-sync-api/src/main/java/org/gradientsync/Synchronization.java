package org.gradientsync;

/**
 * The times of one reduction over the ranks, as {@link GradientSync#observe} reports them. Times
 * are in milliseconds by the device's clock: on a GPU, the time that the GPU needed, not the time
 * for which the host waited.
 *
 * @param sequence the number of the call among this sync's calls, from 1
 * @param bucket the bucket of {@link GradientBuckets}, from 0, or -1 for a call of the sync
 * @param op the reduction
 * @param type the element type
 * @param bytes the size of the buffer
 * @param reducer the reducer's name
 * @param startedAt the start of the reduction, relative to the event that {@link
 *     GradientSync#observe} returned
 * @param queued the time from when the data was ready to the start
 * @param duration the time from start to end, including the wait for other ranks
 * @param exposed the part of the duration for which the compute stream had to wait: from 0 to
 *     duration for buckets whose averages overlap with the backward pass, otherwise all of it
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

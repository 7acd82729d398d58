package org.gradientsync.examples;

import org.gradientsync.DeviceBuffer;

/**
 * Weights that Adam updates at once, with their gradient and moments: as many elements of one type,
 * all on the device's stream.
 *
 * @param number the number of the layer, or of the shard's bucket
 * @param shard whether it is this rank's shard of a bucket, and not a layer
 * @param weight changed by each step
 * @param gradient the averages of the step
 * @param means the decaying means of the gradients, at first zero
 * @param squares the decaying means of the gradients' squares, at first zero
 */
record AdamPart(
    int number,
    boolean shard,
    DeviceBuffer weight,
    DeviceBuffer gradient,
    DeviceBuffer means,
    DeviceBuffer squares) {}

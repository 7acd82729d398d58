package org.gradientsync.spi;

/**
 * A rank's request for a device.
 *
 * @param rank the rank's number in the job
 * @param localRank its number on its node, from 0
 * @param localSize the number of ranks on its node
 * @param settings the user's settings
 */
public record DeviceRequest(int rank, int localRank, int localSize, Settings settings) {}

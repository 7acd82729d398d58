package org.gradientsync.spi;

/**
 * Which rank asks for a device.
 *
 * @param rank its rank in the job
 * @param localRank its rank on its node, from 0
 * @param localSize the number of ranks on its node
 * @param settings what the user asked for
 */
public record DeviceRequest(int rank, int localRank, int localSize, Settings settings) {}

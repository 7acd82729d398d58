package org.gradientsync.spi;

/**
 * Which rank asks for a device.
 *
 * @param rank its rank in the job
 * @param localRank its number among the ranks of the job on its node, from 0, whatever group the
 *     sync is made on
 * @param localSize the number of ranks of the job on its node
 * @param settings what the user asked for
 */
public record DeviceRequest(int rank, int localRank, int localSize, Settings settings) {}

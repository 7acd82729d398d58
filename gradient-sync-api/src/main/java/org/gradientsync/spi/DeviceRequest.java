package org.gradientsync.spi;

/**
 * A rank's request for a device.
 *
 * @param rank the rank's number in the job
 * @param localRank its number among the ranks of the job on its node, from 0, whatever group the
 *     sync is made on; for a rank that joins others that have devices, the first number that none
 *     of them has
 * @param localSize the number of ranks of the job on its node
 * @param settings the user's settings
 */
public record DeviceRequest(int rank, int localRank, int localSize, Settings settings) {}

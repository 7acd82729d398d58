package org.gradientsync.spi;

import org.gradientsync.DeviceBuffer;

/**
 * One message between this rank and another.
 *
 * @param buffer the elements to send, or to receive
 * @param peer the other rank
 * @param sends whether this rank sends
 */
public record PeerMessage(DeviceBuffer buffer, int peer, boolean sends) {}

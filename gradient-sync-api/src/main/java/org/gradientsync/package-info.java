/**
 * The API for training code: {@link org.gradientsync.GradientSync} averages {@linkplain
 * org.gradientsync.DeviceBuffer buffers} of gradients over ranks, and {@link
 * org.gradientsync.Communicator} exchanges small data between them.
 */
package org.gradientsync;

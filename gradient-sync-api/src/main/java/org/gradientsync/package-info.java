/**
 * What training code imports: {@link org.gradientsync.GradientSync} averages {@linkplain
 * org.gradientsync.DeviceBuffer buffers} of gradients over ranks; {@link
 * org.gradientsync.Communicator} knows the ranks.
 */
package org.gradientsync;

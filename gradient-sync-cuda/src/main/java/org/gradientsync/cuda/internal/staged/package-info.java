/** The reducer {@code host-staged}: gradients cross the host in pinned memory. */
package org.gradientsync.cuda.internal.staged;

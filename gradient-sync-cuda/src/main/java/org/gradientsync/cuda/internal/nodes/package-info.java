/** The reducer {@code two-level-gpu}, for GPUs of several nodes. */
package org.gradientsync.cuda.internal.nodes;

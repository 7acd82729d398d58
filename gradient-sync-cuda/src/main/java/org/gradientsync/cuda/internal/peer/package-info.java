/** The reducer {@code peer}: kernels that exchange gradients over NVLink. */
package org.gradientsync.cuda.internal.peer;

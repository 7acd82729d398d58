/** CUDA devices, buffers, streams, events and graphs, through JCuda. */
package org.gradientsync.cuda;

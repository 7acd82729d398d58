/** CUDA devices, memory, streams and kernels, through JCuda. */
package org.gradientsync.cuda;

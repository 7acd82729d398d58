/** All access to the CUDA driver and cuBLAS: contexts, streams, memory, the library's kernels. */
package org.gradientsync.cuda.internal.driver;

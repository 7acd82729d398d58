/** The CUDA driver behind one door: contexts, streams, events, memory, kernels of the library. */
package org.gradientsync.cuda.internal.driver;

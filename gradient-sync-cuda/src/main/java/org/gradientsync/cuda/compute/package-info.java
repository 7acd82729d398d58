/** Kernels of the user's own, compiled before or at run time by NVRTC, and cuBLAS. */
package org.gradientsync.cuda.compute;

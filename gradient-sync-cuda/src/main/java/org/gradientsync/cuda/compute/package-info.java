/** The user's own kernels, from PTX or compiled at run time by NVRTC, and cuBLAS. */
package org.gradientsync.cuda.compute;

/**
 * Gradients in the memory of NVIDIA GPUs.
 *
 * <p>{@link CudaDevice} is a rank's GPU. Programs get it from {@code sync.device()}, and need it
 * for what other devices do not have: its {@link CudaBuffer}s have addresses, {@link CudaStream}s
 * wrap those of other libraries, and a {@link CudaGraph} captures averages together with the
 * program's own kernels. {@link CudaEvent} orders streams and measures times. {@link CudaGpu} lists
 * the GPUs that this process sees.
 *
 * <p>{@link CudaDeviceProvider} opens the GPU with the rank's local number, or the one that the
 * setting {@code cuda.device} names.
 *
 * <p>{@link org.gradientsync.cuda.compute} has kernels of the program's own and cuBLAS. Below this
 * package, {@code internal} has the driver and three reducers: {@code peer} for GPUs joined by
 * NVLink, {@code host-staged} through host memory, and {@code nccl}.
 */
package org.gradientsync.cuda;

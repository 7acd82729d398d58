/**
 * Gradients in the memory of NVIDIA GPUs.
 *
 * <p>{@link org.gradientsync.cuda.CudaDevice} is a rank's GPU. Programs get it from {@code
 * sync.device()}, and need it for what other devices do not have: its {@link
 * org.gradientsync.cuda.CudaBuffer}s have addresses, {@link org.gradientsync.cuda.CudaStream}s wrap
 * those of other libraries, and a {@link org.gradientsync.cuda.CudaGraph} captures averages
 * together with the program's own kernels. {@link org.gradientsync.cuda.CudaEvent} orders streams
 * and measures times. {@link org.gradientsync.cuda.CudaGpu} lists the GPUs that this process sees.
 *
 * <p>{@link org.gradientsync.cuda.CudaDeviceProvider} opens the GPU with the rank's local number,
 * or the one that the setting {@code cuda.device} names.
 *
 * <p>{@link org.gradientsync.cuda.compute} has kernels of the program's own and cuBLAS. Below this
 * package, {@code internal} has the driver and three reducers: {@code peer} for GPUs joined by
 * NVLink, {@code host-staged} through host memory, and {@code nccl}.
 */
package org.gradientsync.cuda;

/**
 * The one place that calls the CUDA driver.
 *
 * <p>{@link CudaApi} has the calls, each of which throws a {@link org.gradientsync.DeviceException}
 * with the driver's code. {@link JCudaApi} implements it; tests use a mock. {@link CudaLibrary}
 * loads JCuda's natives once, by way of a {@link NativeFolder} of this process's own. {@link
 * BlasApi} and {@link JCublasApi} are the same for cuBLAS.
 *
 * <p>A {@link Gpu} is a GPU with its primary context. It has {@link GpuMemory}, {@link GpuStream}s
 * and {@link GpuEvent}s. {@link GpuWaits} makes the host wait while {@link DeviceWatch}es look for
 * ranks that never come. {@link DeferredFrees} keeps memory that other ranks still map, and the
 * {@link KernelGate} keeps calls that wait for all kernels apart from kernels that wait for ranks.
 *
 * <p>The library's kernels are in the jar, as {@link KernelImages}: {@link ReduceKernel}, {@link
 * CopyKernel}, {@link NormKernel} and {@link FiniteCheck} launch them, most by way of a {@link
 * FlatLaunch}. {@link PinnedStaging} copies between Java memory and the GPU. {@link DriverAccess}
 * lets the other packages get at a device's {@link Gpu}.
 */
package org.gradientsync.cuda.internal.driver;

/**
 * The one place that calls the CUDA driver.
 *
 * <p>{@link org.gradientsync.cuda.internal.driver.CudaApi} has the calls, each of which throws a
 * {@link org.gradientsync.DeviceException} with the driver's code. {@link
 * org.gradientsync.cuda.internal.driver.JCudaApi} implements it; tests use a mock. {@link
 * org.gradientsync.cuda.internal.driver.CudaLibrary} loads JCuda's natives once, by way of a {@link
 * org.gradientsync.cuda.internal.driver.NativeFolder} of this process's own. {@link
 * org.gradientsync.cuda.internal.driver.BlasApi} and {@link
 * org.gradientsync.cuda.internal.driver.JCublasApi} are the same for cuBLAS.
 *
 * <p>A {@link org.gradientsync.cuda.internal.driver.Gpu} is a GPU with its primary context. It has
 * {@link org.gradientsync.cuda.internal.driver.GpuMemory}, {@link
 * org.gradientsync.cuda.internal.driver.GpuStream}s and {@link
 * org.gradientsync.cuda.internal.driver.GpuEvent}s. {@link
 * org.gradientsync.cuda.internal.driver.GpuWaits} makes the host wait while {@link
 * org.gradientsync.cuda.internal.driver.DeviceWatch}es look for ranks that never come. {@link
 * org.gradientsync.cuda.internal.driver.DeferredFrees} keeps memory that other ranks still map.
 *
 * <p>The library's kernels are in the jar, as {@link
 * org.gradientsync.cuda.internal.driver.KernelImages}: {@link
 * org.gradientsync.cuda.internal.driver.ReduceKernel}, {@link
 * org.gradientsync.cuda.internal.driver.CopyKernel}, {@link
 * org.gradientsync.cuda.internal.driver.NormKernel} and {@link
 * org.gradientsync.cuda.internal.driver.FiniteCheck} launch them, most by way of a {@link
 * org.gradientsync.cuda.internal.driver.FlatLaunch}. {@link
 * org.gradientsync.cuda.internal.driver.PinnedStaging} copies between Java memory and the GPU.
 * {@link org.gradientsync.cuda.internal.driver.DriverAccess} lets the other packages get at a
 * device's {@link org.gradientsync.cuda.internal.driver.Gpu}.
 */
package org.gradientsync.cuda.internal.driver;

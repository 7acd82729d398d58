/**
 * Work of the program's own on a GPU.
 *
 * <p>A {@link org.gradientsync.cuda.compute.CudaModule} loads kernels from PTX, or from CUDA C++
 * that {@link org.gradientsync.cuda.compute.Nvrtc} compiles at run time. A {@link
 * org.gradientsync.cuda.compute.CudaKernel} of it is launched with a {@link
 * org.gradientsync.cuda.compute.Grid} and arguments, which are checked against the kernel's
 * declaration as far as its PTX has it: a wrong number or size throws, and does not crash the
 * process. {@link org.gradientsync.cuda.compute.KernelArguments} lays them out. A {@link
 * org.gradientsync.cuda.compute.PreparedLaunch} is prepared once and enqueued any number of times
 * without allocating.
 *
 * <p>{@link org.gradientsync.cuda.compute.CudaBlas} has the operations of cuBLAS that training
 * needs most.
 *
 * <p>All work is enqueued on the stream of the device, or the one that is given, so it is ordered
 * with averages of the same stream.
 */
package org.gradientsync.cuda.compute;

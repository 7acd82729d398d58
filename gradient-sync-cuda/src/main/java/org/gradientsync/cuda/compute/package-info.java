/**
 * Work of the program's own on a GPU.
 *
 * <p>A {@link CudaModule} loads kernels from PTX, or from CUDA C++ that {@link Nvrtc} compiles at
 * run time. A {@link CudaKernel} of it is launched with a {@link Grid} and arguments, which are
 * checked against the kernel's declaration as far as its PTX has it: a wrong number or size throws,
 * and does not crash the process. {@link KernelArguments} lays them out. A {@link PreparedLaunch}
 * is prepared once and enqueued any number of times without allocating.
 *
 * <p>{@link CudaBlas} has the operations of cuBLAS that training needs most.
 *
 * <p>All work is enqueued on the stream of the device, or the one that is given, so it is ordered
 * with averages of the same stream.
 */
package org.gradientsync.cuda.compute;

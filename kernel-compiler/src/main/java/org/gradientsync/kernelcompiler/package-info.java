/**
 * Compiles the library's CUDA kernels while it is built. No part of the library.
 *
 * <p>{@link KernelCompiler} is the program that Maven runs. It reads a {@link KernelTable}, the
 * list of modules, makes the {@link Source} of each, and compiles it for each {@link Target} by a
 * {@link Compiler}: {@link Nvrtc}, NVIDIA's run-time compiler, which needs neither a GPU nor nvcc.
 *
 * <p>{@link ImageCache} keeps what was compiled, because that takes minutes. A {@link
 * BuildException} says what the build is missing.
 */
package org.gradientsync.kernelcompiler;

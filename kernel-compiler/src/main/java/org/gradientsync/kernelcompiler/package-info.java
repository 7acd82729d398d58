/**
 * Compiles the library's CUDA kernels while it is built. No part of the library.
 *
 * <p>{@code KernelCompiler} is the program that Maven runs. It reads a {@code KernelTable}, the
 * list of modules, makes the {@code Source} of each, and compiles it for each {@code Target} by a
 * {@code Compiler}: {@code Nvrtc}, NVIDIA's run-time compiler, which needs neither a GPU nor nvcc.
 *
 * <p>{@code ImageCache} keeps what was compiled, because that takes minutes. A {@code
 * BuildException} says what the build is missing.
 */
package org.gradientsync.kernelcompiler;

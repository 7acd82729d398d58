package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.cuda.CudaException;

/**
 * cuBLAS as this module uses it, behind which JCublas stands, or a mock. Types are FLOAT32 and
 * FLOAT64; addresses are plain numbers; matrices lie column by column. Every call throws {@link
 * CudaException} with the library's error code where the library reports one. Those that compute
 * allocate nothing.
 */
public interface BlasApi {
  /** For the calling thread's current context. */
  cublasHandle create();

  void destroy(cublasHandle handle);

  /** Where the handle's later calls are enqueued, with cuBLAS's own workspace. */
  void useStream(cublasHandle handle, CUstream stream);

  /** Memory for the handle's later calls, until the next {@link #useStream}. */
  void useWorkspace(cublasHandle handle, long address, long bytes);

  /** Whether the handle's later products of FLOAT32 may round their inputs to TF32. */
  void useTf32(cublasHandle handle, boolean tf32);

  /**
   * C = alpha op(A) op(B) + beta C, where op(A) is m by k, op(B) k by n, C m by n, none of them
   * empty.
   *
   * @param transposeA whether op(A) is A transposed
   * @param lda from one column of A to the next, in elements; ldb and ldc likewise
   * @param beta if it is 0, C is not read
   */
  void multiply(
      cublasHandle handle,
      DataType type,
      boolean transposeA,
      boolean transposeB,
      int m,
      int n,
      int k,
      double alpha,
      long a,
      int lda,
      long b,
      int ldb,
      double beta,
      long c,
      int ldc);

  /** x = factor x. */
  void scale(cublasHandle handle, DataType type, int count, double factor, long x);

  /** y = factor x + y. */
  void addScaled(cublasHandle handle, DataType type, int count, double factor, long x, long y);
}

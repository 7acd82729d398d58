package org.gradientsync.cuda;

import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;

/**
 * cuBLAS as this module uses it, behind which JCublas stands, or a mock. Types are FLOAT32 and
 * FLOAT64; addresses are plain numbers; matrices lie column by column. Every call throws {@link
 * CudaException} with the library's error code where the library reports one.
 */
interface BlasApi {
  /** For the calling thread's current context. */
  cublasHandle create();

  void destroy(cublasHandle handle);

  /** Where the handle's later calls are enqueued. */
  void useStream(cublasHandle handle, CUstream stream);

  /** C (m by n) = A (m by k) times B (k by n), none of them empty. */
  void multiply(cublasHandle handle, DataType type, int m, int n, int k, long a, long b, long c);

  /** x = factor x. */
  void scale(cublasHandle handle, DataType type, int count, double factor, long x);

  /** y = factor x + y. */
  void addScaled(cublasHandle handle, DataType type, int count, double factor, long x, long y);
}

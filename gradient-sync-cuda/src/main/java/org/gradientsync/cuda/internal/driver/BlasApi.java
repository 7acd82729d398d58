package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;

/**
 * The calls of cuBLAS that this module uses, implemented with JCublas or by a mock. Types are
 * FLOAT32 and FLOAT64; addresses are plain numbers; matrices are column-major. Every call throws a
 * {@link DeviceException} with cuBLAS's code if cuBLAS reports an error. {@link #multiply}, {@link
 * #scale} and {@link #addScaled} allocate nothing.
 */
public interface BlasApi {
  /** Creates a handle for the calling thread's current context. */
  cublasHandle create();

  void destroy(cublasHandle handle);

  /** The library's version, for example 120605 for 12.6.5. */
  int version(cublasHandle handle);

  /** Sets the stream of the handle's later calls, and resets the workspace to cuBLAS's own. */
  void useStream(cublasHandle handle, CUstream stream);

  /** Sets the workspace of the handle's later calls, until the next {@link #useStream}. */
  void useWorkspace(cublasHandle handle, long address, long bytes);

  /** Sets whether the handle's later FLOAT32 products may round their inputs to TF32. */
  void useTf32(cublasHandle handle, boolean tf32);

  /**
   * C = alpha op(A) op(B) + beta C, where op(A) is m by k, op(B) is k by n, C is m by n, and none
   * of them is empty.
   *
   * @param transposeA whether op(A) is A transposed
   * @param lda the distance between columns of A, in elements; ldb and ldc likewise
   * @param beta a factor; if it is 0, C is not read
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

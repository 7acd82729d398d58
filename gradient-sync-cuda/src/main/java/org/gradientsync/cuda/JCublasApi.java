package org.gradientsync.cuda;

import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.jcublas.cublasOperation;
import jcuda.jcublas.cublasStatus;
import jcuda.runtime.cudaStream_t;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;

/** cuBLAS through JCublas. */
final class JCublasApi implements BlasApi {
  private static JCublasApi instance;
  private static UnavailableException failure;

  private JCublasApi() {
    JCublas2.initialize(); // or the class's first use, which comes before it, loads the natives
  }

  /**
   * Loads it, once for each process.
   *
   * @throws UnavailableException if it does not load here, with one line that says what to do
   */
  static synchronized JCublasApi load() {
    if (instance == null && failure == null) {
      try {
        instance = NativeFolder.whileLoading(JCublasApi::new);
      } catch (LinkageError e) {
        String reason = NativeFolder.reason(e);
        failure =
            new UnavailableException(
                reason.contains("libcublas.so.12")
                    ? "libcublas.so.12 is missing: install CUDA 12's cuBLAS, or use a kernel instead"
                    : "cuBLAS does not load: " + reason,
                e);
      }
    }
    if (failure != null) {
      throw failure;
    }
    return instance;
  }

  @Override
  public cublasHandle create() {
    cublasHandle handle = new cublasHandle();
    check(JCublas2.cublasCreate(handle), "cublasCreate", "");
    return handle;
  }

  @Override
  public void destroy(cublasHandle handle) {
    check(JCublas2.cublasDestroy(handle), "cublasDestroy", "");
  }

  @Override
  public void useStream(cublasHandle handle, CUstream stream) {
    check(JCublas2.cublasSetStream(handle, new cudaStream_t(stream)), "cublasSetStream", "");
  }

  @Override
  public void multiply(
      cublasHandle handle, DataType type, int m, int n, int k, long a, long b, long c) {
    int none = cublasOperation.CUBLAS_OP_N;
    Pointer one = number(type, 1);
    Pointer zero = number(type, 0);
    Pointer pa = pointer(a);
    Pointer pb = pointer(b);
    Pointer pc = pointer(c);
    boolean single = type == DataType.FLOAT32;
    int status =
        single
            ? JCublas2.cublasSgemm(handle, none, none, m, n, k, one, pa, m, pb, k, zero, pc, m)
            : JCublas2.cublasDgemm(handle, none, none, m, n, k, one, pa, m, pb, k, zero, pc, m);
    check(status, single ? "cublasSgemm" : "cublasDgemm", ", m=" + m + ", n=" + n + ", k=" + k);
  }

  @Override
  public void scale(cublasHandle handle, DataType type, int count, double factor, long x) {
    Pointer alpha = number(type, factor);
    Pointer px = pointer(x);
    boolean single = type == DataType.FLOAT32;
    check(
        single
            ? JCublas2.cublasSscal(handle, count, alpha, px, 1)
            : JCublas2.cublasDscal(handle, count, alpha, px, 1),
        single ? "cublasSscal" : "cublasDscal",
        ", count=" + count);
  }

  @Override
  public void addScaled(
      cublasHandle handle, DataType type, int count, double factor, long x, long y) {
    Pointer alpha = number(type, factor);
    Pointer px = pointer(x);
    Pointer py = pointer(y);
    boolean single = type == DataType.FLOAT32;
    check(
        single
            ? JCublas2.cublasSaxpy(handle, count, alpha, px, 1, py, 1)
            : JCublas2.cublasDaxpy(handle, count, alpha, px, 1, py, 1),
        single ? "cublasSaxpy" : "cublasDaxpy",
        ", count=" + count);
  }

  private static Pointer pointer(long address) {
    return new CUdeviceptr().withByteOffset(address);
  }

  /** A scalar in host memory, which cuBLAS reads before its call returns. */
  private static Pointer number(DataType type, double value) {
    return type == DataType.FLOAT32
        ? Pointer.to(new float[] {(float) value})
        : Pointer.to(new double[] {value});
  }

  private static void check(int status, String call, String detail) {
    if (status != cublasStatus.CUBLAS_STATUS_SUCCESS) {
      throw new CudaException(
          call + " failed: " + cublasStatus.stringFor(status) + " (" + status + ")" + detail,
          status);
    }
  }
}

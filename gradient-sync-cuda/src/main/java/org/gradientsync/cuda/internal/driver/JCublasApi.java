package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.jcublas.cublasMath;
import jcuda.jcublas.cublasOperation;
import jcuda.jcublas.cublasStatus;
import jcuda.runtime.cudaStream_t;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.HostBuffers;

/** cuBLAS through JCublas. */
public final class JCublasApi implements BlasApi {
  private static final ReturnCode CODES = new ReturnCode(cublasStatus::stringFor);

  private static JCublasApi instance;
  private static UnavailableException failure;

  private final ThreadLocal<Arguments> arguments = ThreadLocal.withInitial(Arguments::new);

  /** The streams in JCublas's type, so that changing the stream allocates nothing. */
  private final Map<CUstream, cudaStream_t> streams =
      Collections.synchronizedMap(new WeakHashMap<>());

  private JCublasApi() {
    JCublas2.initialize(); // runs the class's static initializer, which loads the natives
  }

  /**
   * Loads cuBLAS, once per process.
   *
   * @throws UnavailableException if it cannot be loaded; the message is one line that says why
   */
  public static synchronized JCublasApi load() {
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
    CODES.check("cublasCreate", JCublas2::cublasCreate, handle);
    return handle;
  }

  @Override
  public void destroy(cublasHandle handle) {
    CODES.check("cublasDestroy", JCublas2::cublasDestroy, handle);
  }

  @Override
  public int version(cublasHandle handle) {
    int[] version = new int[1];
    CODES.check("cublasGetVersion", JCublas2::cublasGetVersion, handle, version);
    return version[0];
  }

  @Override
  public void useStream(cublasHandle handle, CUstream stream) {
    // The map compares streams by the driver's handle, which is all that a cudaStream_t copies.
    cudaStream_t same = streams.get(stream);
    if (same == null) {
      same = new cudaStream_t(stream);
      streams.put(stream, same);
    }
    CODES.check("cublasSetStream", JCublas2::cublasSetStream, handle, same);
  }

  @Override
  public void useWorkspace(cublasHandle handle, long address, long bytes) {
    int status;
    try {
      status = JCublas2.cublasSetWorkspace(handle, arguments.get().a(address), bytes);
    } catch (jcuda.CudaException e) {
      status = CODES.of(e);
    }
    CODES.check(status, "cublasSetWorkspace", "bytes", bytes);
  }

  @Override
  public void useTf32(cublasHandle handle, boolean tf32) {
    int mode = tf32 ? cublasMath.CUBLAS_TF32_TENSOR_OP_MATH : cublasMath.CUBLAS_DEFAULT_MATH;
    CODES.check("cublasSetMathMode", "mode", mode, () -> JCublas2.cublasSetMathMode(handle, mode));
  }

  @Override
  public void multiply(
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
      int ldc) {
    Arguments own = arguments.get();
    Pointer pAlpha = own.alpha(type, alpha);
    Pointer pBeta = own.beta(type, beta);
    Pointer pa = own.a(a);
    Pointer pb = own.b(b);
    Pointer pc = own.c(c);
    int opA = transposeA ? cublasOperation.CUBLAS_OP_T : cublasOperation.CUBLAS_OP_N;
    int opB = transposeB ? cublasOperation.CUBLAS_OP_T : cublasOperation.CUBLAS_OP_N;
    boolean single = type == DataType.FLOAT32;
    int status;
    try {
      status =
          single
              ? JCublas2.cublasSgemm(
                  handle, opA, opB, m, n, k, pAlpha, pa, lda, pb, ldb, pBeta, pc, ldc)
              : JCublas2.cublasDgemm(
                  handle, opA, opB, m, n, k, pAlpha, pa, lda, pb, ldb, pBeta, pc, ldc);
    } catch (jcuda.CudaException e) {
      status = CODES.of(e);
    }
    if (status != cublasStatus.CUBLAS_STATUS_SUCCESS) {
      throw CODES.failed(
          status, single ? "cublasSgemm" : "cublasDgemm", ", m=" + m + ", n=" + n + ", k=" + k);
    }
  }

  @Override
  public void scale(cublasHandle handle, DataType type, int count, double factor, long x) {
    Arguments own = arguments.get();
    Pointer alpha = own.alpha(type, factor);
    Pointer px = own.a(x);
    boolean single = type == DataType.FLOAT32;
    int status;
    try {
      status =
          single
              ? JCublas2.cublasSscal(handle, count, alpha, px, 1)
              : JCublas2.cublasDscal(handle, count, alpha, px, 1);
    } catch (jcuda.CudaException e) {
      status = CODES.of(e);
    }
    CODES.check(status, single ? "cublasSscal" : "cublasDscal", "count", count);
  }

  @Override
  public void addScaled(
      cublasHandle handle, DataType type, int count, double factor, long x, long y) {
    Arguments own = arguments.get();
    Pointer alpha = own.alpha(type, factor);
    Pointer px = own.a(x);
    Pointer py = own.b(y);
    boolean single = type == DataType.FLOAT32;
    int status;
    try {
      status =
          single
              ? JCublas2.cublasSaxpy(handle, count, alpha, px, 1, py, 1)
              : JCublas2.cublasDaxpy(handle, count, alpha, px, 1, py, 1);
    } catch (jcuda.CudaException e) {
      status = CODES.of(e);
    }
    CODES.check(status, single ? "cublasSaxpy" : "cublasDaxpy", "count", count);
  }

  /**
   * The arguments of a call of JCublas, reused by the thread's next call. The scalars are in host
   * memory; cuBLAS reads them before its call returns.
   */
  public static final class Arguments {
    private final ByteBuffer scalars = HostBuffers.allocate(2 * Double.BYTES);
    private final Pointer alpha = Pointer.to(scalars);
    private final Pointer beta = alpha.withByteOffset(Double.BYTES);
    private final CUdeviceptr a = new CUdeviceptr();
    private final CUdeviceptr b = new CUdeviceptr();
    private final CUdeviceptr c = new CUdeviceptr();

    Pointer alpha(DataType type, double value) {
      put(0, type, value);
      return alpha;
    }

    Pointer beta(DataType type, double value) {
      put(Double.BYTES, type, value);
      return beta;
    }

    Pointer a(long address) {
      return JCudaHandles.point(a, address);
    }

    Pointer b(long address) {
      return JCudaHandles.point(b, address);
    }

    Pointer c(long address) {
      return JCudaHandles.point(c, address);
    }

    private void put(int at, DataType type, double value) {
      if (type == DataType.FLOAT32) {
        scalars.putFloat(at, (float) value);
      } else {
        scalars.putDouble(at, value);
      }
    }
  }
}

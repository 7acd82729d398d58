package org.gradientsync.cuda.internal.driver;

import jcuda.driver.CUcontext;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import org.gradientsync.spi.Resources;

/** A GPU and its primary context. {@code CudaDevice} is the public class for it. */
public final class Gpu {
  private final CudaApi api;
  private final int ordinal;
  private final String name;
  private final String pciAddress;
  private final CUcontext context;
  private final KernelGate gate;
  private final GpuMemory memory;
  private final GpuWaits waits;
  private final GpuKernels kernels = new GpuKernels(this);
  private final GpuBlas blas = new GpuBlas(this);
  private volatile boolean warmsUpStreams;
  private volatile boolean closed;

  public Gpu(CudaApi api, int ordinal) {
    this.api = api;
    this.ordinal = ordinal;
    name = api.deviceName(ordinal);
    pciAddress = api.pciAddress(ordinal);
    context = api.retainContext(ordinal);
    api.useContext(context);
    gate = KernelGate.of(api, context);
    memory = new GpuMemory(api, context, toString());
    waits = new GpuWaits(api, context);
  }

  public CudaApi api() {
    return api;
  }

  public int ordinal() {
    return ordinal;
  }

  public String name() {
    return name;
  }

  public String pciAddress() {
    return pciAddress;
  }

  public CUcontext context() {
    return context;
  }

  public GpuMemory memory() {
    return memory;
  }

  public KernelGate gate() {
    return gate;
  }

  public GpuWaits waits() {
    return waits;
  }

  public GpuKernels kernels() {
    return kernels;
  }

  public GpuBlas blas() {
    return blas;
  }

  /** Makes the context current for this thread, as most calls of {@link #api} need. */
  public void makeCurrent() {
    api.useContext(context);
  }

  public int sms() {
    return api.sms(ordinal);
  }

  /** The compute capability: 10 times major plus minor. */
  public int capability() {
    return api.capability(ordinal);
  }

  /**
   * Runs a kernel on each stream that is created from now on, before it is used. For ranks that
   * share this GPU: where two threads use new streams at the same time, the driver can make the
   * first kernel of one wait for the other's (about 1 in 100 pairs of ranks; none after a kernel
   * had run on each stream).
   */
  public void warmUpStreams() {
    warmsUpStreams = true;
  }

  boolean warmsUpStreams() {
    return warmsUpStreams;
  }

  /** Makes a captured graph executable. Destroys the captured graph even if that fails. */
  public CUgraphExec instantiate(CUgraph captured) {
    CUgraphExec executable;
    try {
      executable = api.instantiate(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(captured));
      throw e;
    }
    try {
      api.destroyGraph(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(executable));
      throw e;
    }
    return executable;
  }

  public boolean isClosed() {
    return closed;
  }

  public void markClosed() {
    closed = true;
  }

  public void requireOpen() {
    if (closed) {
      throw new IllegalStateException("device is closed: device=" + name);
    }
  }

  @Override
  public String toString() {
    return name + " (" + pciAddress + ")";
  }
}

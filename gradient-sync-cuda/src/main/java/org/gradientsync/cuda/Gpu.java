package org.gradientsync.cuda;

import jcuda.driver.CUcontext;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import org.gradientsync.spi.Resources;

/**
 * One GPU in its primary context, as this library uses it; what stands behind {@link CudaDevice}.
 */
final class Gpu {
  private final CudaApi api;
  private final int ordinal;
  private final String name;
  private final String pciAddress;
  private final CUcontext context;
  private final GpuMemory memory;
  private final GpuWaits waits;
  private final Object loading = new Object();
  private volatile ReduceKernel reduceKernel;
  private volatile boolean closed;

  Gpu(CudaApi api, int ordinal) {
    this.api = api;
    this.ordinal = ordinal;
    name = api.deviceName(ordinal);
    pciAddress = api.pciAddress(ordinal);
    context = api.retainContext(ordinal);
    api.useContext(context);
    memory = new GpuMemory(api, context, toString());
    waits = new GpuWaits(api, context);
  }

  CudaApi api() {
    return api;
  }

  int ordinal() {
    return ordinal;
  }

  String name() {
    return name;
  }

  String pciAddress() {
    return pciAddress;
  }

  CUcontext context() {
    return context;
  }

  GpuMemory memory() {
    return memory;
  }

  GpuWaits waits() {
    return waits;
  }

  /** CUDA keeps a current context for each thread, so every call begins with this. */
  void makeCurrent() {
    api.useContext(context);
  }

  int multiprocessors() {
    return api.multiprocessors(ordinal);
  }

  /** The compute capability, as 10 times major plus minor. */
  int capability() {
    return api.capability(ordinal);
  }

  /** Loaded by the first call: the driver may compile it. */
  ReduceKernel reduceKernel() {
    ReduceKernel loaded = reduceKernel;
    if (loaded != null) {
      return loaded;
    }
    synchronized (loading) {
      if (reduceKernel == null) {
        requireOpen();
        makeCurrent();
        reduceKernel = new ReduceKernel(api, ordinal);
      }
      return reduceKernel;
    }
  }

  void unloadReduceKernel() {
    ReduceKernel loaded = reduceKernel;
    if (loaded != null) {
      loaded.close();
    }
  }

  /** Makes what was captured ready to be launched, and gives it back, also if that fails. */
  CUgraphExec instantiate(CUgraph captured) {
    CUgraphExec ready;
    try {
      ready = api.instantiate(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(captured));
      throw e;
    }
    try {
      api.destroyGraph(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(ready));
      throw e;
    }
    return ready;
  }

  boolean isClosed() {
    return closed;
  }

  void markClosed() {
    closed = true;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("device is closed: device=" + name);
    }
  }

  @Override
  public String toString() {
    return name + " (" + pciAddress + ")";
  }
}

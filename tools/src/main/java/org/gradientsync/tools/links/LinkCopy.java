package org.gradientsync.tools.links;

import static org.gradientsync.tools.links.DriverCall.check;

import jcuda.Pointer;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;

/**
 * A copy that can be enqueued any number of times.
 *
 * @param gpu the GPU that copies
 * @param from the source, for example {@code GPU 0}
 * @param to the destination, for example {@code host}
 * @param throughHost whether GPUs without peer access copy through the host
 * @param step enqueues the copy
 */
public record LinkCopy(LinkGpu gpu, String from, String to, boolean throughHost, Step step) {
  private static final String HOST = "host";

  /** Enqueues a copy while its GPU's context is current. */
  public interface Step {
    /**
     * Enqueues the copy.
     *
     * @param stream a stream of that GPU
     */
    void enqueue(CUstream stream);
  }

  /** Returns a copy between GPUs, made by the sending one. */
  static LinkCopy between(LinkGpu from, LinkGpu to, boolean throughHost, long bytes) {
    return new LinkCopy(
        from,
        from.name(),
        to.name(),
        throughHost,
        stream ->
            check(
                JCudaDriver.cuMemcpyPeerAsync(
                    to.target(), to.context(), from.source(), from.context(), bytes, stream),
                "cuMemcpyPeerAsync",
                from.what() + ", to=" + to.name() + ", bytes=" + bytes));
  }

  static LinkCopy toDevice(Pointer host, LinkGpu gpu, long bytes) {
    return new LinkCopy(
        gpu,
        HOST,
        gpu.name(),
        false,
        stream ->
            check(
                JCudaDriver.cuMemcpyHtoDAsync(gpu.target(), host, bytes, stream),
                "cuMemcpyHtoDAsync",
                gpu.what() + ", bytes=" + bytes));
  }

  static LinkCopy toHost(LinkGpu gpu, Pointer host, long bytes) {
    return new LinkCopy(
        gpu,
        gpu.name(),
        HOST,
        false,
        stream ->
            check(
                JCudaDriver.cuMemcpyDtoHAsync(host, gpu.source(), bytes, stream),
                "cuMemcpyDtoHAsync",
                gpu.what() + ", bytes=" + bytes));
  }

  LinkKind.Link measured(double value) {
    return new LinkKind.Link(from, to, value, throughHost);
  }
}

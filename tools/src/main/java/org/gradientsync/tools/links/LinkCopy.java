package org.gradientsync.tools.links;

import java.util.function.ToIntFunction;
import jcuda.driver.CUstream;

/**
 * A copy that can be enqueued any number of times.
 *
 * @param gpu the GPU that copies
 * @param from the source, for example {@code GPU 0}
 * @param to the destination, for example {@code host}
 * @param throughHost whether GPUs without peer access copy through the host
 * @param step enqueues the copy on a stream of the GPU, and returns the driver's result
 */
public record LinkCopy(
    LinkGpu gpu, String from, String to, boolean throughHost, ToIntFunction<CUstream> step) {
  LinkKind.Link measured(double value) {
    return new LinkKind.Link(from, to, value, throughHost);
  }
}

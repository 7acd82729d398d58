package org.gradientsync.cuda;

import java.util.HashSet;
import java.util.Set;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUstream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Resources;

/**
 * Keeps the kernels of all ranks in the order of the calls, whatever the calls' streams. Its user
 * has a lock, but for {@link #isDone}. But for the first call on a stream nothing allocates.
 */
final class PeerOrder implements AutoCloseable {
  private final CudaDevice device;
  private final PeerHandover handover;
  private final CudaEvent ordered;

  /**
   * Streams that have handed over to another: after a failure their calls may end later than what
   * has followed.
   */
  private final Set<CudaStream> handed = new HashSet<>();

  private volatile CudaStream last;

  /** Whether {@link #ordered} stands behind the last call on another stream. */
  private boolean left;

  PeerOrder(CudaDevice device, PeerMailbox mailbox) {
    this.device = device;
    handover = new PeerHandover(device, mailbox);
    ordered = device.createEvent(false);
  }

  /**
   * Lets a stream wait for the call before.
   *
   * @param plan what follows; null if it is a graph of the caller's
   */
  void follow(CudaStream stream, PeerPlan plan) {
    if (stream == last) {
      return;
    }
    if (plan != null && last != null && handover.follow(stream.handle(), plan)) {
      handed.add(last);
      last = stream;
      return;
    }
    if (last != null) {
      ordered.record(last);
      left = true;
    }
    if (left) {
      stream.waitFor(ordered);
    }
    last = stream;
  }

  /** What {@link #follow} was called for has been enqueued. */
  void enqueued(PeerPlan plan) {
    handover.enqueued(plan);
  }

  /** Keeps the order when a stream goes, which {@link #isDone} does not ask from then on. */
  synchronized void streamCloses(CudaStream stream) {
    boolean hasHandedOver = handed.remove(stream);
    if (stream == last) {
      ordered.record(stream);
      left = true;
      last = null;
    } else if (hasHandedOver && last == null) {
      stream.waitFor(ordered);
      ordered.record(stream);
    } else if (hasHandedOver) {
      ordered.record(stream);
      last.waitFor(ordered);
    }
  }

  /**
   * Waits for all calls so far; not for those in graphs of which nobody tells.
   *
   * @param failed whether a call has failed, asked when the last one is over
   * @throws GradientSyncException what those have found who look around meanwhile
   */
  void await(BooleanSupplier failed) {
    Resources.closeAll(
        device::makeCurrent,
        () -> {
          if (last != null) {
            device.awaitEnd(last.handle(), null);
          } else if (left) {
            device.awaitEnd(null, ordered.handle());
          }
        },
        () -> {
          if (failed.getAsBoolean()) {
            handed.forEach(stream -> device.api().awaitStream(stream.handle()));
          }
        });
  }

  /**
   * Whether all calls are known to be done, as long as nothing has failed. For any thread: others
   * may make calls and close streams.
   */
  synchronized boolean isDone() {
    CudaStream asked = last;
    if (asked == null || asked.isClosed()) {
      return false;
    }
    CUstream handle = asked.handle();
    return !device.api().isCapturing(handle) && device.api().isDone(handle);
  }

  @Override
  public void close() {
    ordered.close();
  }
}

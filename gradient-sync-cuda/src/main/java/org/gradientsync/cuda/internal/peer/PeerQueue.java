package org.gradientsync.cuda.internal.peer;

import java.util.concurrent.atomic.AtomicLong;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;

/**
 * Enqueues this rank's calls, each behind the one before, and counts them. Calls in graphs that the
 * caller has captured count when the graph is launched. The caller holds the group's lock.
 */
final class PeerQueue {
  private static final AtomicLong CREATED = new AtomicLong();

  private final RankGroup group;
  private final CudaDevice device;
  private final Gpu gpu;
  private final PeerOrder order;
  private final PeerErrors errors;
  private final PeerProgress progress;

  /** A thread that holds several syncs' locks has taken them in the order of this number. */
  private final long age = CREATED.incrementAndGet();

  PeerQueue(
      RankGroup group,
      CudaDevice device,
      PeerOrder order,
      PeerErrors errors,
      PeerProgress progress) {
    this.group = group;
    this.device = device;
    gpu = DriverAccess.gpu(device);
    this.order = order;
    this.errors = errors;
    this.progress = progress;
  }

  /** Enqueues a collective. Allocates nothing, unless the stream is being captured. */
  void enqueue(
      PeerRegistration registration, PeerPlan plan, CollectiveCall call, boolean capturing) {
    GpuStream stream = streamOf(call);
    CUstream handle = stream.handle();
    gpu.makeCurrent();
    if (capturing) {
      fillCopy(registration, call);
      plan.enqueueEach(handle);
      copyOutput(registration, call);
      registration.captured = true;
      addReplay(stream, new Captured(call.copy()));
      return;
    }
    errors.begin();
    count(call);
    try {
      order.follow(stream);
      fillCopy(registration, call);
      plan.enqueue(handle);
      copyOutput(registration, call);
    } finally {
      order.endEnqueuing();
    }
  }

  /** Enqueues a message, for which its two ranks have met. Allocates nothing. */
  void enqueue(PeerMessages messages, CollectiveCall message) {
    GpuStream stream = streamOf(message);
    try {
      gpu.makeCurrent();
      group.deviceCalls().enqueuedMessage();
      order.follow(stream);
      messages.enqueue(message, stream.handle());
    } catch (DeviceException e) {
      throw failed(e);
    } finally {
      order.endEnqueuing();
    }
  }

  /** Breaks the group, because a call that fails here leaves the other ranks' kernels waiting. */
  RuntimeException failed(DeviceException e) {
    synchronized (group) {
      order.endEnqueuing(); // it has failed
      return group.failed(e);
    }
  }

  private static GpuStream streamOf(CollectiveCall call) {
    return DriverAccess.stream(((CudaBuffer) call.buffer()).stream());
  }

  /** So that a call that fails leaves the output as it was. */
  private void fillCopy(PeerRegistration registration, CollectiveCall call) {
    if (registration.copy != null) {
      device.copy(call.out(), registration.copy);
    }
  }

  private void copyOutput(PeerRegistration registration, CollectiveCall call) {
    if (registration.copy != null) {
      device.copy(registration.copy, call.out());
    }
  }

  private void addReplay(GpuStream stream, Captured replay) {
    if (!stream.atReplay(replay)) {
      group.deviceCalls().stopCounting();
      progress.publishEnqueued(group.deviceCalls().count(), group.deviceCalls().met());
    }
  }

  private void count(CollectiveCall call) {
    group.deviceCalls().enqueues(call);
    progress.publishEnqueued(group.deviceCalls().count(), group.deviceCalls().met());
  }

  /** A call in a graph that the caller has captured. */
  private final class Captured implements GpuStream.Replay {
    private final CollectiveCall call;

    Captured(CollectiveCall call) {
      this.call = call;
    }

    @Override
    public Object lock() {
      return group;
    }

    @Override
    public long order() {
      return age;
    }

    @Override
    public void check() {
      requireOpen(call.in());
      requireOpen(call.out());
      errors.check();
      group.requireUsable();
      errors.begin();
    }

    private static void requireOpen(DeviceBuffer buffer) {
      if (buffer != null) {
        ((CudaBuffer) buffer).requireOpen();
      }
    }

    @Override
    public void replays(GpuStream stream) {
      count(call);
      order.follow(stream);
    }

    @Override
    public void launched() {
      order.endEnqueuing();
    }

    @Override
    public RuntimeException failed(DeviceException e) {
      if (group.isBroken()) {
        order.endEnqueuing();
        return e;
      }
      return PeerQueue.this.failed(e);
    }
  }
}

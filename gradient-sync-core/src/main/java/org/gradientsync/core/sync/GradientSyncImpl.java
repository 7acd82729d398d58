package org.gradientsync.core.sync;

import java.nio.ByteBuffer;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.core.buckets.BucketsBuilder;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;
import org.gradientsync.spi.Unclosed;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank's sync: how it begins, is split, goes on with other ranks, and ends. */
final class GradientSyncImpl extends SyncCalls implements Admission {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);

  final Selection selection;
  private final BackendDevice device;
  private final GradientSyncImpl parent; // or null; it owns the device
  private final Set<GradientSyncImpl> parts = new LinkedHashSet<>(); // guarded by itself
  private final Unclosed unclosed;
  private final Runnable stop = this::requestStop;
  private AtomicBoolean stopRequested = new AtomicBoolean(); // shared with successors
  private boolean stopsOnSignal;
  Transport undecided; // of a job that others may have gone to, or null

  /**
   * @param parent the sync that this one is a part of, or null
   */
  GradientSyncImpl(Selection selection, Selection.Choice choice, GradientSyncImpl parent) {
    super(choice);
    this.selection = selection;
    this.parent = parent;
    device = choice.device();
    choice.communicator().beforeEachCall(order::awaitThread);
    unclosed = Unclosed.watch(this, "sync of rank " + rank() + " of " + size());
  }

  @Override
  public DeviceBuffer allocate(DataType type, long count) {
    order.requireOpen();
    return watched(device.allocate(type, count));
  }

  @Override
  public DeviceBuffer wrap(DataType type, ByteBuffer memory) {
    order.requireOpen();
    if (device instanceof HostDevice host) {
      return watched(host.wrap(type, memory));
    }
    throw new IllegalArgumentException(
        "host memory cannot be wrapped on this device: device=%s, rank=%s"
            .formatted(device.kind(), rank()));
  }

  private static DeviceBuffer watched(DeviceBuffer buffer) {
    ((AbstractDeviceBuffer) buffer).warnIfNeverClosed();
    return buffer;
  }

  @Override
  public void requestStop() {
    stopRequested.set(true);
  }

  @Override
  public void allStop() {
    StopSignals.expect();
  }

  @Override
  public boolean isStopRequested() {
    return stopRequested.get() || parent != null && parent.isStopRequested();
  }

  void stopOnSignal() {
    stopsOnSignal = true;
    StopSignals.add(stop);
  }

  @Override
  public GradientSync split(int color, int key) {
    order.awaitTurn();
    ProcessGroup group = choice.group();
    ProcessGroup ranks = group.split(Origin.SYNC_SPLIT, color, key, group.timeouts());
    if (ranks == null) {
      return null;
    }
    Selection.Choice chosen = selection.choosePart(ranks, device);
    GradientSyncImpl part;
    try {
      part = new GradientSyncImpl(selection, chosen, this);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, chosen.reducer(), chosen.communicator());
      throw e;
    }
    if (runner.interceptor() != null) {
      part.useInterceptor(runner.interceptor());
    }
    add(part);
    return part;
  }

  @Override
  public GradientSync survivors() {
    order.requireOpen();
    order.requireProgram();
    return new Succession(this, selection).ofSurvivors();
  }

  @Override
  public int newcomers() {
    return choice.group().transport().newcomers(size(), selection.agreed());
  }

  @Override
  public boolean hasJoined() {
    return choice.group().transport().hasJoined();
  }

  @Override
  public GradientSync admit() {
    return new Succession(this, selection).withNewcomers();
  }

  @Override
  public boolean isClosed() {
    return order.isClosed();
  }

  Transport takeUndecided() {
    Transport taken = undecided;
    undecided = null;
    return taken;
  }

  /** A sync of other ranks that takes this one's place. */
  GradientSyncImpl successor(Selection.Choice chosen) {
    GradientSyncImpl next = new GradientSyncImpl(selection, chosen, parent);
    next.inherit(this);
    return next;
  }

  private void inherit(GradientSyncImpl earlier) {
    stopRequested = earlier.stopRequested;
    if (earlier.stopsOnSignal) {
      stopsOnSignal = true;
      StopSignals.replace(earlier.stop, stop);
    }
    if (earlier.runner.interceptor() != null) {
      useInterceptor(earlier.runner.interceptor());
    }
    if (parent != null) {
      parent.add(this);
    }
  }

  @Override
  public void close() {
    requireProgram();
    AutoCloseable unseen = order.isClosed() ? null : order.unseenFailure();
    Resources.closeAll(
        order::closeThread,
        this::closeParts, // with no lock held, because it waits for the parts' running calls
        () -> closeExcept(null),
        unseen);
  }

  /** Throws if a callback of this sync, or of a part that it closes, makes this call. */
  private void requireProgram() {
    order.requireProgram();
    synchronized (parts) {
      parts.forEach(GradientSyncImpl::requireProgram);
    }
  }

  /**
   * @param kept the device that another sync goes on to use, or null
   */
  void closeExcept(BackendDevice kept) {
    Resources.closeAll(() -> closeOwn(kept), this::closeKept);
  }

  private void closeOwn(BackendDevice kept) {
    synchronized (choice.group()) {
      if (order.isClosed()) {
        return;
      }
      order.close();
      if (kept == null) {
        StopSignals.remove(stop); // otherwise when the next sync has taken over
      }
      unclosed.closed();
      Resources.closeAll(
          this::closeParts, // those that were made meanwhile
          runner,
          choice.reducer(), // which waits for the work enqueued on the device
          this::report,
          choice.communicator(),
          () -> Succession.leave(takeUndecided()),
          kept == null ? ownDevice() : null,
          parent == null ? null : () -> parent.forget(this));
    }
  }

  /** The device if this sync closes it, otherwise null. */
  BackendDevice ownDevice() {
    return parent == null ? device : null;
  }

  void closeParts() {
    List<GradientSyncImpl> open;
    synchronized (parts) {
      open = List.copyOf(parts);
    }
    Resources.closeAll(open);
  }

  private void add(GradientSyncImpl part) {
    synchronized (parts) {
      parts.add(part);
    }
    if (order.isClosed()) { // by another thread, which may have missed the new part
      part.close();
    }
  }

  private void forget(GradientSyncImpl part) {
    synchronized (parts) {
      parts.remove(part);
    }
  }

  /** Logs one line for the job, as at the start. The lines of parts are for debugging. */
  private void report() {
    try {
      observer.close();
    } catch (RuntimeException e) {
      log.debug("rank {}: the last times cannot be had", rank(), e); // the device has failed
    }
    String summary = observer.summary();
    if (summary.isEmpty()) {
      return;
    } else if (rank() == 0 && parent == null) {
      log.info("rank 0 of {}: {}", size(), summary);
    } else {
      log.debug("rank {} of {}: {}", rank(), size(), summary);
    }
  }

  void intercept(CallInterceptor newInterceptor) {
    useInterceptor(newInterceptor);
    device.intercept(newInterceptor);
  }

  @Override
  protected GradientBuckets.Builder newBuckets(List<Parameter> parameters) {
    return new BucketsBuilder(this, parameters);
  }

  /** For example {@code rank 0 of 4, device host, reducer shared}. */
  @Override
  public String toString() {
    return "rank %s of %s, device %s, reducer %s"
        .formatted(rank(), size(), device.name(), reducer());
  }
}

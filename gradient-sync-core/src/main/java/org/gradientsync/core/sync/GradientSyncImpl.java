package org.gradientsync.core.sync;

import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.PendingAverage;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.gradientsync.core.buckets.BucketsBuilder;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;
import org.gradientsync.spi.Unclosed;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank's sync. Each call of the program begins here, and a {@link CallRunner} runs it. */
final class GradientSyncImpl extends ChosenSync implements Admission {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);

  final Selection selection;
  private final GroupCommunicator communicator;
  private final BackendDevice device;
  private final GradientSyncImpl parent; // or null; it owns the device
  private final Set<GradientSyncImpl> parts = new LinkedHashSet<>(); // guarded by itself
  private final ArrayAverages arrays = new ArrayAverages(this);
  private final SparseAverages sparse;
  private final Unclosed unclosed;
  private final Runnable stop = this::requestStop;
  private AtomicBoolean stopRequested =
      new AtomicBoolean(); // one with all that take this one's place
  private boolean stopsOnSignal;
  Transport undecided; // of a job that others may have gone to, or null

  /** The program's view of the communicator, possibly wrapped. */
  private Communicator programCommunicator;

  /**
   * @param parent the sync that this one is a part of, or null
   */
  GradientSyncImpl(Selection selection, Selection.Choice choice, GradientSyncImpl parent) {
    super(choice);
    this.selection = selection;
    this.parent = parent;
    communicator = choice.communicator();
    device = choice.device();
    programCommunicator = communicator;
    communicator.beforeEachCall(order::awaitThread);
    sparse = new SparseAverages(this, choice);
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
        "host memory cannot be wrapped on this device: device="
            + device.kind()
            + ", rank="
            + rank());
  }

  private static DeviceBuffer watched(DeviceBuffer buffer) {
    ((AbstractDeviceBuffer) buffer).warnIfNeverClosed();
    return buffer;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    Objects.requireNonNull(buffer, "buffer");
    runner.make(
        Kind.ALL_REDUCE, buffer, buffer, Objects.requireNonNull(op, "op"), RankGroup.NO_RANK);
  }

  @Override
  public void average(float[] array) {
    Objects.requireNonNull(array, "array");
    order.awaitTurn();
    arrays.average(array);
  }

  @Override
  public void average(double[] array) {
    Objects.requireNonNull(array, "array");
    order.awaitTurn();
    arrays.average(array);
  }

  @Override
  public void average(List<float[]> all) {
    for (float[] array : Objects.requireNonNull(all, "arrays")) {
      Objects.requireNonNull(array, "an array");
    }
    order.awaitTurn();
    arrays.average(all);
  }

  @Override
  public SparseRows average(SparseRows rows) {
    Objects.requireNonNull(rows, "rows");
    order.awaitTurn();
    return sparse.average(rows);
  }

  @Override
  public PendingAverage averageAsync(DeviceBuffer buffer) {
    return runner.start(Objects.requireNonNull(buffer, "buffer"));
  }

  @Override
  public void grouped(Runnable calls) {
    runner.grouped(Objects.requireNonNull(calls, "calls"));
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_GATHER, in, null, out, null, null, RankGroup.NO_RANK);
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out, long[] counts) {
    Objects.requireNonNull(counts, "counts");
    blocks(Kind.ALL_GATHER, in, null, out, counts, null, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE_SCATTER, in, null, out, null, op, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, long[] counts, ReduceOp op) {
    Objects.requireNonNull(counts, "counts");
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE_SCATTER, in, counts, out, null, op, RankGroup.NO_RANK);
  }

  @Override
  public void reduce(DeviceBuffer buffer, ReduceOp op, int root) {
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE, buffer, null, buffer, null, op, root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.GATHER, in, null, out, null, null, root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, long[] counts, int root) {
    blocks(Kind.GATHER, in, null, out, Objects.requireNonNull(counts, "counts"), null, root);
  }

  @Override
  public void scatter(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.SCATTER, in, null, out, null, null, root);
  }

  @Override
  public void allToAll(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_TO_ALL, in, null, out, null, null, RankGroup.NO_RANK);
  }

  @Override
  public void allToAll(DeviceBuffer in, long[] inCounts, DeviceBuffer out, long[] outCounts) {
    Objects.requireNonNull(inCounts, "inCounts");
    Objects.requireNonNull(outCounts, "outCounts");
    blocks(Kind.ALL_TO_ALL, in, inCounts, out, outCounts, null, RankGroup.NO_RANK);
  }

  /** Makes a call with an input and an output, of which a rank may have one. */
  private void blocks(
      Kind kind,
      DeviceBuffer in,
      long[] inCounts, // or null
      DeviceBuffer out,
      long[] outCounts, // or null
      ReduceOp op,
      int root) {
    DeviceBuffer input = kind.hasInput(rank(), root) ? Objects.requireNonNull(in, "in") : null;
    DeviceBuffer output = kind.hasOutput(rank(), root) ? Objects.requireNonNull(out, "out") : null;
    runner.make(kind, input, output, op, root, inCounts, outCounts);
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    runner.make(Kind.SEND, Objects.requireNonNull(buffer, "buffer"), null, null, peer);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    runner.make(Kind.RECEIVE, null, Objects.requireNonNull(buffer, "buffer"), null, peer);
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    Objects.requireNonNull(buffer, "buffer");
    runner.make(Kind.BROADCAST, buffer, buffer, null, root);
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> buffers, int root) {
    runner.broadcast(buffers, root);
  }

  @Override
  public void register(DeviceBuffer buffer) {
    runner.register(Objects.requireNonNull(buffer, "buffer"));
  }

  @Override
  public double mean(double value) {
    order.requireOpen();
    double[] average = {value};
    communicator.compose(
        Origin.MEAN,
        () -> programCommunicator.allReduce(DoubleBuffer.wrap(average), ReduceOp.AVERAGE));
    return average[0];
  }

  @Override
  public void barrier() {
    order.requireOpen();
    programCommunicator.barrier();
  }

  @Override
  public void requestStop() {
    stopRequested.set(true);
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
    order.requireNoHook();
    order.requireNotRecording();
    return new Succession(this, selection).ofSurvivors();
  }

  @Override
  public int newcomers() {
    return choice.group().transport().newcomers(size(), selection.agreed());
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
  public Communicator communicator() {
    return programCommunicator;
  }

  @Override
  public void close() {
    order.requireNoHook();
    order.closeThread();
    closeParts(); // with no lock held, because it waits for the parts' running calls
    closeExcept(null);
  }

  /**
   * @param kept the device that another sync goes on to use, or null
   */
  void closeExcept(BackendDevice kept) {
    // In this order: calls hold the locks of arrays and rows first.
    Resources.closeAll(() -> closeOwn(kept), arrays, sparse);
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
          communicator,
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

  private void useInterceptor(CallInterceptor newInterceptor) {
    runner.intercept(newInterceptor);
    programCommunicator = communicator.intercepted(newInterceptor);
  }

  @Override
  protected GradientBuckets.Builder newBuckets(List<Parameter> parameters) {
    return new BucketsBuilder(this, parameters);
  }
}

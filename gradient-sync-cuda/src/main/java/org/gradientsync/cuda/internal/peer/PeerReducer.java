package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.group.MessageRounds;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DeviceWatch;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * The reducer for GPUs of one node that are joined by NVLink. Each GPU runs one kernel, and the
 * kernels write into each other's memory. After the first one on a buffer, an all-reduce is one
 * launch, without messages, waits or allocation. The kernels themselves compare what the ranks ask
 * for.
 */
final class PeerReducer implements Reducer, DeviceWatch {
  static final String NAME = "peer";

  private static final String REGISTER = "register the buffer before";
  private static final String RUN_BEFORE = "make the same call once before";
  private static final String NO_MESSAGES = "send and receive outside of graphs";

  private static final AtomicLong CREATED = new AtomicLong();

  private final RankGroup group;
  private final CudaDevice device;
  private final Gpu gpu;
  private final PeerMemory memory;
  private final PeerUnmapFlags unmapFlags;
  private final PeerMailbox mailbox;
  private final PeerReport report;
  private final PeerPlanner planner;
  private final PeerBudget.Share share;
  private final PeerRegistrar registrar;
  private final PeerMessages messages; // or null
  private final PeerNames names = new PeerNames();
  private final PeerFailure failure;
  private final PeerOrder order;
  private final PeerLaunch depart;
  private final PeerProgress progress;
  private final PeerWatchdog watchdog;
  private final PeerFinite finite; // or null

  /** The lock order: a thread that locks two syncs locks the older one first. */
  private final long age = CREATED.incrementAndGet();

  /** The group's number of the last call that was enqueued or failed. */
  private volatile long lastCall;

  private volatile boolean reported;

  PeerReducer(
      RankGroup group,
      CudaDevice device,
      PeerMemory memory,
      PeerUnmapFlags unmapFlags,
      PeerMailbox mailbox,
      PeerReport report,
      PeerPlanner planner,
      PeerBudget.Share share,
      PeerProgress progress,
      PeerFinite finite) {
    this.group = group;
    this.device = device;
    gpu = DriverAccess.gpu(device);
    this.memory = memory;
    this.unmapFlags = unmapFlags;
    this.mailbox = mailbox;
    this.report = report;
    this.planner = planner;
    this.share = share;
    depart = group.size() > 1 ? planner.depart() : null;
    messages =
        group.size() > 1
            ? new PeerMessages(planner, mailbox.layout(), group.rank(), group.size())
            : null;
    order = new PeerOrder(gpu);
    registrar =
        new PeerRegistrar(
            group, device, memory, unmapFlags, mailbox.of(group.rank()), planner, names, order);
    failure = new PeerFailure(group, report, names);
    this.progress = progress;
    this.finite = finite;
    watchdog = new PeerWatchdog(group, gpu, progress, report);
    gpu.waits().watch(this);
    memory.sharing().begin(gpu.memory());
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void run(CollectiveCall call) {
    synchronized (group) {
      try {
        check();
        if (call.kind().isMessage()) {
          message(call);
        } else {
          collective(call);
        }
      } catch (DeviceException e) {
        throw broken(e);
      }
    }
  }

  /** Breaks the group, because a call that fails here leaves the other ranks' kernels waiting. */
  private RankLostException broken(DeviceException e) {
    synchronized (group) {
      lastCall = group.deviceCalls().pending(); // it will never be enqueued
      return group.lost("the call failed in the middle: " + e, e);
    }
  }

  private void collective(CollectiveCall call) {
    group.requireUsable();
    boolean capturing = isCapturing(call);
    PeerRegistration registration = registrar.get(call);
    boolean known = registration != null && isKnown(registration, call);
    if (!known || meetsEachTime(call) && !capturing) {
      requireNoCapture(call, call.kind() == Kind.ALL_REDUCE ? REGISTER : RUN_BEFORE);
      group.meet(call);
      group.finished();
      if (nothingToDo(call)) {
        return;
      }
      boolean keeps = known && call.kind() == Kind.ALL_REDUCE;
      registration = keeps ? registration : registrar.together(call);
    }
    enqueue(registration, registrar.plan(registration, call), call);
  }

  /** Whether a call needs no rendezvous, as its buffers are registered. */
  private static boolean isKnown(PeerRegistration registration, CollectiveCall call) {
    return call.kind() == Kind.ALL_REDUCE || registration.plan(call) != null;
  }

  /**
   * Whether the hosts meet for each call that is not captured: ranks may come with other roots or
   * buffers, kernels do not compare what is padding, and of collectives only a rendezvous announces
   * values that are not finite.
   */
  private boolean meetsEachTime(CollectiveCall call) {
    return switch (call.kind()) {
      case ALL_REDUCE -> ((CudaBuffer) call.in()).isPadded();
      case BROADCAST, GATHER, SCATTER -> true;
      default -> finite != null && call.op() != null;
    };
  }

  /** Returns whether a call moves nothing between ranks; copies what one rank moves alone. */
  private boolean nothingToDo(CollectiveCall call) {
    if (call.blockCount(group.size()) == 0) {
      return true;
    }
    if (group.size() > 1) {
      return false;
    }
    if (((CudaBuffer) call.in()).address() != ((CudaBuffer) call.out()).address()) {
      device.copy(call.in(), call.out());
    }
    return true;
  }

  private void message(CollectiveCall call) {
    requireNoCapture(call, NO_MESSAGES);
    group.meet(call);
    if (call.buffer().count() == 0) {
      group.finished();
      return;
    }
    GpuStream stream = streamOf(call);
    gpu.makeCurrent();
    group.deviceCalls().enqueuedMessage();
    order.follow(stream);
    messages.enqueue(call, stream.handle());
    lastCall = group.deviceCalls().pending();
  }

  @Override
  public void exchange(List<CollectiveCall> all) {
    MismatchedCallException mismatch = null;
    for (CollectiveCall message : MessageRounds.inOneOrder(all, group.rank())) {
      try {
        run(message);
      } catch (MismatchedCallException e) {
        mismatch = mismatch == null ? e : mismatch;
      }
    }
    if (mismatch != null) {
      throw mismatch;
    }
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      try {
        check();
        requireNoCapture(call, REGISTER);
        group.meetToPrepare(call);
        group.finished();
        boolean alone = group.size() == 1 || call.blockCount(group.size()) == 0;
        if (!alone && !PeerRegistrar.isOneSided(call.kind())) {
          registrar.together(call);
        }
      } catch (DeviceException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public boolean compresses() {
    return true; // in the kernels
  }

  @Override
  public boolean blocksHost() {
    return false;
  }

  @Override
  public boolean checksFinite() {
    return group.size() > 1; // one rank enqueues nothing
  }

  @Override
  public List<String> state() {
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add("peer: failure=" + report.failure() + (reported ? ", told" : ""));
    for (int peer = 0; peer < group.size(); peer++) {
      lines.add("  rank " + peer + ": " + progress.textOf(peer));
    }
    return lines;
  }

  /** Runs {@link PeerAutotune}. Collective. Returns null if buffers cannot be mapped. */
  long[] autotune(PeerLayout layout) {
    synchronized (group) {
      long most = layout.mostBytes(PeerAlgorithm.TWO_SHOT);
      try (CudaBuffer scratch =
          device.allocate(DataType.FLOAT32, PeerAutotune.elements(most), device.stream())) {
        device.stream().await();
        PeerRegistration all = registrar.registerInPlace(scratch, true);
        if (all.mapped == null) {
          return null;
        }
        return new PeerAutotune(gpu, memory.communicator(), planner, all).measure(layout);
      }
    }
  }

  private static GpuStream streamOf(CollectiveCall call) {
    return DriverAccess.stream(((CudaBuffer) call.buffer()).stream());
  }

  private boolean isCapturing(CollectiveCall call) {
    return ((CudaBuffer) call.buffer()).stream().isCapturing();
  }

  /** Throws during capture: a rendezvous of the hosts cannot become part of a graph. */
  private void requireNoCapture(CollectiveCall call, String remedy) {
    if (isCapturing(call)) {
      throw new IllegalStateException(
          "the stream is being captured: buffer="
              + call.buffer()
              + ", rank="
              + group.rank()
              + "; "
              + remedy);
    }
  }

  /**
   * Begins a call that all ranks make, and throws what the GPUs have found in earlier ones: on all
   * ranks in the same call.
   */
  private void begin() {
    if (finite != null && finite.begins()) {
      throw finite.take(names, this::awaitCalls);
    }
  }

  /** Enqueues a call. Allocates nothing, unless the stream is being captured. */
  private void enqueue(PeerRegistration registration, PeerPlan plan, CollectiveCall call) {
    GpuStream stream = streamOf(call);
    CUstream handle = stream.handle();
    gpu.makeCurrent();
    if (gpu.api().isCapturing(handle)) {
      copyInput(registration, call);
      plan.enqueueEach(handle);
      registration.captured = true;
      addReplay(stream, new Captured(call.copy()));
      return;
    }
    begin();
    count(call);
    order.follow(stream);
    copyInput(registration, call);
    plan.enqueue(handle);
    lastCall = group.deviceCalls().pending();
  }

  private void copyInput(PeerRegistration registration, CollectiveCall call) {
    if (registration.copy != null) {
      device.copy(call.in(), registration.copy);
    }
  }

  private void addReplay(GpuStream stream, Captured replay) {
    if (!stream.atReplay(replay)) {
      group.deviceCalls().stopCounting();
      progress.enqueued(group.deviceCalls().count(), group.deviceCalls().met());
    }
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
      PeerReducer.this.check();
      group.requireUsable();
      begin();
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
      lastCall = group.deviceCalls().pending();
    }

    @Override
    public RuntimeException failed(DeviceException e) {
      return group.isBroken() ? e : broken(e);
    }
  }

  private void count(CollectiveCall call) {
    group.deviceCalls().enqueued(call);
    progress.enqueued(group.deviceCalls().count(), group.deviceCalls().met());
  }

  @Override
  public void closes(CUstream closing) {
    synchronized (group) {
      order.streamCloses(closing);
    }
  }

  private void awaitCalls() {
    order.await();
  }

  /** Records that all calls are done, if they are: the host may have waited for something else. */
  private void settle() {
    long call = lastCall;
    // Compare twice: in between, another thread may have counted its next call, and isDone may have
    // queried the stream of that call.
    if (group.deviceCalls().pending() == call
        && order.isDone()
        && group.deviceCalls().pending() == call) {
      group.deviceCalls().done(call);
    }
  }

  @Override
  public void afterWaiting() {
    if (reported) {
      return; // so that other buffers can still be read
    }
    check();
    settle();
    if (finite != null && finite.hasFound()) {
      synchronized (group) {
        if (finite.hasFound()) { // otherwise another thread has thrown it meanwhile
          finite.announce(); // to ranks that have not waited for these calls
          throw finite.take(names, this::awaitCalls);
        }
      }
    }
  }

  @Override
  public void check(boolean together) {
    check();
    if (together) {
      synchronized (group) {
        group.requireUsable();
        begin();
      }
    }
  }

  /**
   * Throws the failure that a kernel has reported, once. After that the group is broken, and each
   * call throws. Runs before each call and after each wait of the host.
   */
  private void check() {
    if (report.failure() == PeerReport.NONE || reported) {
      return;
    }
    synchronized (group) {
      if (reported || watchdog.hasThrown()) {
        return; // another thread has thrown it
      }
      reported = true;
      if (watchdog.isMismatch()) {
        throw group.mismatched(watchdog.table());
      }
      if (report.failure() == PeerReport.MISMATCH) {
        MismatchedCallException e = new MismatchedCallException(failure.table());
        group.lost("the ranks' calls did not match on the GPU", e);
        throw e;
      }
      if (report.failure() == PeerReport.TIMED_OUT) {
        throw group.timedOut(failure.cause());
      }
      throw group.lost("stopped: " + failure.cause(), null);
    }
  }

  private void depart() {
    if (depart != null) {
      CUstream stream = DriverAccess.stream(device.stream()).handle();
      depart.enqueue(stream);
      gpu.api().awaitStream(stream);
    }
  }

  /**
   * Throws what has failed on the device and the program has not seen, as it makes no other call.
   *
   * @param broken whether the program has seen why the kernels had to stop
   */
  private void throwUnseen(boolean broken) {
    Resources.closeAll(this::throwFound, broken ? null : this::check);
  }

  private void throwFound() {
    if (finite != null && finite.hasFound()) {
      throw finite.take(names, () -> {});
    }
  }

  @Override
  public void close() {
    synchronized (group) {
      gpu.waits().unwatch(this);
      watchdog.close();
      boolean broken = group.isBroken();
      if (broken) {
        report.stop(); // no other rank will join
      }
      Resources.closeAll(
          this::awaitCalls,
          this::depart,
          () -> throwUnseen(broken),
          registrar,
          planner,
          order,
          memory,
          finite,
          unmapFlags::setAllUnmapped, // even after a failure, so that others can free their memory
          () -> memory.sharing().end(gpu.memory()),
          share,
          mailbox,
          report);
    }
  }
}

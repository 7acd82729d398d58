package org.gradientsync.cuda.internal.peer;

import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DeviceWatch;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.internal.collectives.Agreement;
import org.gradientsync.internal.collectives.CollectivePlans;
import org.gradientsync.internal.collectives.GroupCommunicator;
import org.gradientsync.internal.collectives.MessageRounds;
import org.gradientsync.internal.collectives.PlanCache;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

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
  private final GroupCommunicator communicator;
  private final PeerMemory memory;
  private final PeerUnmapFlags unmapFlags;
  private final PeerMailbox mailbox;
  private final PeerReport report;
  private final PeerPlanner planner;
  private final PeerBudget.Share share;
  private final PlanCache<PeerRegistration> registrations;
  private final CollectivePlans<PeerCollective> collectives;

  /** Apart, so that the ranks forget the others in the same order. */
  private final CollectivePlans<PeerCollective> oneSided;

  private final PeerMessages messages; // or null
  private final PeerNames names = new PeerNames();
  private final PeerFailure failure;
  private final PeerOrder order;
  private final PeerLaunch depart;
  private final PeerProgress progress;
  private final PeerWatchdog watchdog;
  private final PeerFinite finite; // or null

  /** Ended registrations whose addresses may still be in the caller's graphs; released on close. */
  private final List<AutoCloseable> captured = new ArrayList<>();

  /** The lock order: a thread that locks two syncs locks the older one first. */
  private final long age = CREATED.incrementAndGet();

  /** The group's number of the last call that was enqueued or failed. */
  private volatile long lastCall;

  private int lastNumber;
  private volatile boolean reported;
  private boolean closing;

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
    this.communicator = memory.communicator();
    this.memory = memory;
    this.unmapFlags = unmapFlags;
    this.mailbox = mailbox;
    this.report = report;
    this.planner = planner;
    this.share = share;
    registrations = new PlanCache<>(group, this::end);
    collectives = new CollectivePlans<>(group);
    oneSided = new CollectivePlans<>(group);
    depart = group.size() > 1 ? planner.depart() : null;
    messages =
        group.size() > 1
            ? new PeerMessages(planner, mailbox.layout(), group.rank(), group.size())
            : null;
    order = new PeerOrder(gpu);
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
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    try {
      reduce((CudaBuffer) buffer, op);
    } catch (DeviceException e) {
      throw broken(e);
    }
  }

  /** Breaks the group, because a call that fails here leaves the other ranks' kernels waiting. */
  private RankLostException broken(DeviceException e) {
    synchronized (group) {
      lastCall = group.deviceCalls().pending(); // it will never be enqueued
      return group.lost("the call failed in the middle: " + e, e);
    }
  }

  private void reduce(CudaBuffer own, ReduceOp op) {
    synchronized (group) {
      check();
      group.requireUsable();
      PeerRegistration registration = registrations.get(own);
      if (registration == null || own.isPadded()) { // kernels do not compare what is padding
        requireNoCapture(own, REGISTER);
        group.meetForAllReduce(own, op);
        group.finished();
        if (nothingToDo(own)) {
          return;
        }
        registration = registration == null ? register(own) : registration;
      }
      enqueue(registration, plan(registration, op), own, op, RankGroup.NO_RANK);
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    try {
      broadcast((CudaBuffer) buffer, root);
    } catch (DeviceException e) {
      throw broken(e);
    }
  }

  private void broadcast(CudaBuffer own, int root) {
    synchronized (group) {
      check();
      PeerRegistration registration = registrations.get(own);
      boolean known = registration != null && registration.broadcast(root) != null;
      if (!known || !own.stream().isCapturing()) {
        requireNoCapture(own, RUN_BEFORE);
        group.meetForBroadcast(own, root);
        group.finished();
        if (nothingToDo(own)) {
          return;
        }
        registration = planBroadcast(own, root);
      }
      enqueue(registration, registration.broadcast(root), own, null, root);
    }
  }

  private PeerRegistration planBroadcast(CudaBuffer own, int root) {
    if (needsRegistration(numberOf(registrations.get(own)))) {
      registrations.forget(own);
      register(own);
    }
    PeerRegistration registration = registrations.get(own);
    if (registration.broadcast(root) == null) {
      prepare(() -> registration.keepBroadcast(root, planner.broadcast(registration, root)));
      memory.sharing().planned(communicator);
    }
    return registration;
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    try {
      run(collective, (CudaBuffer) in, (CudaBuffer) out, op, root);
    } catch (DeviceException e) {
      throw broken(e);
    }
  }

  private void run(Collective collective, CudaBuffer in, CudaBuffer out, ReduceOp op, int root) {
    synchronized (group) {
      check();
      group.requireUsable();
      CudaBuffer own = out != null ? out : in;
      PeerCollective call =
          plans(collective).get(PeerCollective.kind(collective, op), in, out, root);
      // Only a rendezvous announces values that are not finite.
      boolean meets = PeerCollective.isOneSided(collective) || finite != null && op != null;
      if (call == null || meets && !own.stream().isCapturing()) {
        requireNoCapture(own, RUN_BEFORE);
        call = meet(collective, in, out, op, root);
      }
      if (call != null) {
        enqueue(call);
      }
    }
  }

  private CollectivePlans<PeerCollective> plans(Collective collective) {
    return PeerCollective.isOneSided(collective) ? oneSided : collectives;
  }

  /** Meets the other ranks. Returns null if nothing is left to do. */
  private PeerCollective meet(
      Collective collective, CudaBuffer in, CudaBuffer out, ReduceOp op, int root) {
    group.meetFor(collective, in, out, op, root);
    group.finished();
    if (collective.blockCount(in, out, group.size()) == 0) {
      return null;
    }
    if (group.size() == 1) {
      if (in.address() != out.address()) {
        device.copy(in, out);
      }
      return null;
    }
    return known(collective, in, out, op, root);
  }

  /** A call that the ranks have registered together, now or before. All ranks ask for it. */
  private PeerCollective known(
      Collective collective, CudaBuffer in, CudaBuffer out, ReduceOp op, int root) {
    CollectivePlans<PeerCollective> plans = plans(collective);
    Object kind = PeerCollective.kind(collective, op);
    PeerCollective known = plans.get(kind, in, out, root);
    if (needsRegistration(known == null ? 0 : known.number)) {
      plans.forget(kind, in, out, root);
      prepare(() -> plans.put(kind, in, out, root, register(collective, in, out, op, root)));
    }
    return plans.get(kind, in, out, root);
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    message((CudaBuffer) buffer, peer, true);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    message((CudaBuffer) buffer, peer, false);
  }

  private void message(CudaBuffer buffer, int peer, boolean sends) {
    synchronized (group) {
      try {
        check();
        requireNoCapture(buffer, NO_MESSAGES);
        group.meetForMessage(buffer, peer, sends);
        if (buffer.count() == 0) {
          group.finished();
          return;
        }
        GpuStream stream = DriverAccess.stream(buffer.stream());
        gpu.makeCurrent();
        group.deviceCalls().enqueuedMessage();
        order.follow(stream);
        messages.enqueue(buffer, peer, sends, stream.handle());
        lastCall = group.deviceCalls().pending();
      } catch (DeviceException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void exchange(List<PeerMessage> messages) {
    MismatchedCallException failure = null;
    for (PeerMessage message : MessageRounds.inOneOrder(messages, group.rank())) {
      try {
        if (message.sends()) {
          send(message.buffer(), message.peer());
        } else {
          receive(message.buffer(), message.peer());
        }
      } catch (MismatchedCallException e) {
        failure = failure == null ? e : failure;
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      try {
        check();
        requireNoCapture(own, REGISTER);
        group.meetForRegistration(own);
        group.finished();
        if (!nothingToDo(own) && needsRegistration(numberOf(registrations.get(own)))) {
          registrations.forget(own);
          register(own);
        }
      } catch (DeviceException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void register(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (collective.hasRoot()) {
      return; // the ranks meet at each such call
    }
    synchronized (group) {
      try {
        check();
        requireNoCapture((CudaBuffer) in, REGISTER);
        // A block may be a part of the whole, at another offset on each rank.
        group.meetForRegistration(collective == Collective.ALL_GATHER ? out : in);
        group.finished();
        if (!nothingToDo((CudaBuffer) in)) {
          known(collective, (CudaBuffer) in, (CudaBuffer) out, op, root);
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

  private PeerPlan plan(PeerRegistration registration, ReduceOp op) {
    if (registration.plan(op) == null) {
      prepare(() -> registration.keep(op, planner.reduction(registration, op)));
    }
    return registration.plan(op);
  }

  /**
   * Runs the preparations of a first call. This thread may be capturing a stream, and CUDA would
   * then refuse some of the calls that they make. They do not touch what is captured.
   */
  private void prepare(Runnable preparations) {
    gpu.makeCurrent();
    int mode = gpu.api().captureMode(CudaApi.ANY_CALL);
    try {
      preparations.run();
    } finally {
      gpu.api().captureMode(mode);
    }
  }

  /** Runs {@link PeerAutotune}. Collective. Returns null if buffers cannot be mapped. */
  long[] autotune(PeerLayout layout) {
    synchronized (group) {
      long most = layout.mostBytes(PeerAlgorithm.TWO_SHOT);
      try (CudaBuffer scratch =
          device.allocate(DataType.FLOAT32, PeerAutotune.elements(most), device.stream())) {
        device.stream().await();
        PeerRegistration all = register(scratch, true);
        if (all.mapped == null) {
          return null;
        }
        return new PeerAutotune(gpu, communicator, planner, all).measure(layout);
      }
    }
  }

  /** Throws during capture: a rendezvous of the hosts cannot become part of a graph. */
  private void requireNoCapture(CudaBuffer buffer, String remedy) {
    if (buffer.stream().isCapturing()) {
      throw new IllegalStateException(
          "the stream is being captured: buffer="
              + buffer
              + ", rank="
              + group.rank()
              + "; "
              + remedy);
    }
  }

  private boolean nothingToDo(CudaBuffer buffer) {
    return group.size() == 1 || buffer.count() == 0;
  }

  private static long numberOf(PeerRegistration registration) {
    return registration == null ? 0 : registration.number;
  }

  /**
   * Whether the ranks' buffers are not registered together. All ranks get the same answer.
   *
   * @param number of this rank's registration, or 0
   */
  private boolean needsRegistration(long number) {
    long[] numbers = {number, -number};
    communicator.allReduce(LongBuffer.wrap(numbers), ReduceOp.MIN);
    return numbers[0] == 0 || numbers[0] != -numbers[1];
  }

  private PeerRegistration register(CudaBuffer own) {
    prepare(() -> register(own, planner.needsMapping(own.type(), own.count())));
    return registrations.get(own);
  }

  private PeerRegistration register(CudaBuffer own, boolean map) {
    boolean overlapped = agreeOnNumber(own);
    PeerMemory.Mapped[] mapped = map ? memory.share(own.address()) : null;
    long[] addresses = new long[group.size()];
    addresses[group.rank()] = own.address();
    if (mapped != null) {
      for (int peer = 0; peer < addresses.length; peer++) {
        addresses[peer] = mapped[peer].address();
      }
      gpu.memory()
          .keepUntil(gpu.api().allocationOf(own.address()), unmapFlags.isUnmapped(lastNumber));
    }
    PeerRegistration registration =
        new PeerRegistration(lastNumber, own.type(), own.count(), overlapped, addresses, mapped);
    // Load kernels before any rank may run one: loading can block on a running kernel, which waits
    // for the other ranks.
    String reason = "";
    try {
      for (ReduceOp op : memory.sharing().plannedFirst(own.type())) {
        plan(registration, op);
      }
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    try {
      Agreement.requireAll(communicator, reason);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> release(registration));
      throw e;
    }
    registrations.put(own, registration);
    names.add(lastNumber, own);
    return registration;
  }

  /**
   * Sets {@link #lastNumber} to a number that is new on all ranks.
   *
   * @return whether the streams of all ranks leave most of the GPU to other work
   */
  private boolean agreeOnNumber(CudaBuffer own) {
    long[] number = {lastNumber, DriverAccess.stream(own.stream()).isSparing() ? 0 : 1};
    communicator.allReduce(LongBuffer.wrap(number), ReduceOp.MAX);
    memory.sharing().met(gpu.memory()); // before the agreement that ends each registration
    lastNumber = (int) number[0] + 1;
    if (lastNumber > PeerTag.MAX_REGISTRATIONS) {
      throw new GradientSyncException(
          "too many buffers have been registered, rank="
              + group.rank()
              + ", limit="
              + PeerTag.MAX_REGISTRATIONS
              + "; reuse buffers, or create a new sync");
    }
    return number[1] == 0;
  }

  private PeerCollective register(
      Collective collective, CudaBuffer in, CudaBuffer out, ReduceOp op, int root) {
    CudaBuffer own = out != null ? out : in;
    boolean overlapped = agreeOnNumber(own);
    long count = collective.blockCount(in, out, group.size());
    boolean pushes = planner.pushes(collective, own.type(), count, op);
    PeerMemory.Mapped[] mapped = new PeerMemory.Mapped[0];
    CudaBuffer copy = null;
    if (!pushes) {
      // Ranks without an input take part with memory that the others have mapped already.
      long none = mailbox.of(group.rank());
      mapped = memory.share(in == null ? none : in.address());
      if (mapped == null) {
        copy =
            in == null
                ? null
                : Unclosed.exempt(device.allocate(in.type(), in.count(), own.stream()));
        mapped = memory.share(copy == null ? none : copy.address());
      }
    }
    PeerCollective call =
        new PeerCollective(
            collective, lastNumber, in, out, op, root, count, mapped, copy, this::end);
    String reason = "";
    try {
      if (pushes) {
        call.plan = planner.push(collective, lastNumber, overlapped, in, out, count, op);
      } else if (mapped == null) {
        reason = "a rank cannot map another rank's GPU memory";
      } else {
        keepUntilUnmapped(copy != null ? copy : in);
        long[] inputs = Arrays.stream(mapped).mapToLong(PeerMemory.Mapped::address).toArray();
        call.plan =
            planner.collective(
                collective, lastNumber, overlapped, inputs, out, own.type(), count, op, root);
      }
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    try {
      Agreement.requireAll(communicator, reason); // all have loaded their kernels
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> release(call));
      throw e;
    }
    names.addCollective(lastNumber, PeerCollective.describe(collective, in, out, count, op, root));
    return call;
  }

  private void keepUntilUnmapped(CudaBuffer shared) {
    if (shared != null) {
      gpu.memory()
          .keepUntil(gpu.api().allocationOf(shared.address()), unmapFlags.isUnmapped(lastNumber));
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

  /** Enqueues a collective. Allocates nothing, unless the stream is being captured. */
  private void enqueue(PeerCollective call) {
    GpuStream stream = DriverAccess.stream(call.ordering().stream());
    CUstream handle = stream.handle();
    gpu.makeCurrent();
    if (gpu.api().isCapturing(handle)) {
      copyInput(call);
      call.plan.enqueueEach(handle);
      call.captured = true;
      addReplay(stream, new Captured(call));
      return;
    }
    begin();
    count(call);
    order.follow(stream);
    copyInput(call);
    call.plan.enqueue(handle);
    lastCall = group.deviceCalls().pending();
  }

  private void copyInput(PeerCollective call) {
    if (call.copy != null) {
      device.copy(call.in, call.copy);
    }
  }

  private void addReplay(GpuStream stream, Captured replay) {
    if (!stream.atReplay(replay)) {
      group.deviceCalls().stopCounting();
      progress.enqueued(group.deviceCalls().count(), group.deviceCalls().met());
    }
  }

  /** Enqueues a call. Allocates nothing, unless the stream is being captured. */
  private void enqueue(
      PeerRegistration registration, PeerPlan plan, CudaBuffer buffer, ReduceOp op, int root) {
    GpuStream stream = DriverAccess.stream(buffer.stream());
    CUstream handle = stream.handle();
    gpu.makeCurrent();
    if (gpu.api().isCapturing(handle)) {
      plan.enqueueEach(handle);
      registration.captured = true;
      addReplay(stream, new Captured(buffer, op, root));
      return;
    }
    begin();
    count(buffer, op, root);
    order.follow(stream);
    plan.enqueue(handle);
    lastCall = group.deviceCalls().pending();
  }

  /** A call in a graph that the caller has captured. */
  private final class Captured implements GpuStream.Replay {
    private final List<CudaBuffer> buffers;
    private final Runnable counting;

    Captured(CudaBuffer buffer, ReduceOp op, int root) {
      buffers = List.of(buffer);
      counting = () -> count(buffer, op, root);
    }

    Captured(PeerCollective call) {
      buffers = Stream.of(call.in, call.out).filter(Objects::nonNull).toList();
      counting = () -> count(call);
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
      for (int i = 0; i < buffers.size(); i++) {
        buffers.get(i).requireOpen();
      }
      PeerReducer.this.check();
      group.requireUsable();
      begin();
    }

    @Override
    public void replays(GpuStream stream) {
      counting.run();
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

  private void count(CudaBuffer buffer, ReduceOp op, int root) {
    group.deviceCalls().enqueued(buffer, op, root);
    progress.enqueued(group.deviceCalls().count(), group.deviceCalls().met());
  }

  private void count(PeerCollective call) {
    group
        .deviceCalls()
        .enqueued(call.collective, call.in, call.out, call.count, call.op, call.root);
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

  private void end(PeerRegistration registration) {
    end(registration.captured, () -> release(registration));
  }

  private void end(PeerCollective call) {
    end(call.captured, () -> release(call));
  }

  private void end(boolean isCaptured, AutoCloseable release) {
    if (isCaptured && !closing) {
      captured.add(release);
    } else {
      Resources.closeAll(this::awaitCalls, release);
    }
  }

  private void release(PeerCollective call) {
    PeerMemory.Mapped[] mapped = call.mapped;
    Resources.closeAll(
        call.plan,
        mapped == null ? null : () -> memory.unmap(mapped),
        () -> unmapFlags.setUnmapped(call.number),
        call.copy);
  }

  private void release(PeerRegistration registration) {
    PeerMemory.Mapped[] mapped = registration.mapped;
    Resources.closeAll(
        registration::closePlans,
        mapped == null ? null : () -> memory.unmap(mapped),
        mapped == null ? null : () -> unmapFlags.setUnmapped(registration.number));
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
      closing = true;
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
          registrations,
          collectives,
          oneSided,
          () -> Resources.closeAll(captured),
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

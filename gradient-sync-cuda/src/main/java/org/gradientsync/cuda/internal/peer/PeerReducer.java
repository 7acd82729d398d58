package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.MessageRounds;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DeviceWatch;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * The reducer for GPUs of one node that are joined by NVLink. Each GPU runs one kernel, and the
 * kernels write into each other's memory. After the first one on a buffer, an all-reduce is one
 * launch, without messages, waits or allocation. The hosts do not meet then, unless the buffer is
 * padded: the kernels compare the calls of all ranks by their {@linkplain PeerTag tags}.
 */
final class PeerReducer implements Reducer, DeviceWatch {
  static final String NAME = "peer";

  private static final String REGISTER = "register the buffer before";
  private static final String RUN_BEFORE = "make the same call once before";
  private static final String NO_MESSAGES = "send and receive outside of graphs";

  private static final Consumer<CollectiveCall> NOTHING = call -> {};

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
  private final PeerOrder order;
  private final PeerErrors errors;
  private final PeerQueue queue;
  private final PeerLaunch depart;
  private final PeerFinite finite; // or null
  private final Consumer<CollectiveCall> enqueueMessage = this::enqueueMessage;

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
    PeerNames names = new PeerNames();
    order = new PeerOrder(gpu, group.deviceCalls());
    registrar =
        new PeerRegistrar(
            group,
            device,
            memory,
            unmapFlags,
            mailbox.of(group.rank()),
            planner,
            names,
            order,
            progress);
    this.finite = finite;
    errors = new PeerErrors(group, gpu, report, names, progress, finite, order);
    queue = new PeerQueue(group, device, order, errors, progress);
    gpu.waits().watch(this);
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void run(CollectiveCall call) {
    synchronized (group) {
      try {
        errors.check();
        if (call.kind().isMessage()) {
          message(call);
        } else {
          collective(call);
        }
      } catch (DeviceException e) {
        throw queue.failed(e);
      }
    }
  }

  private void collective(CollectiveCall call) {
    group.requireUsable();
    boolean capturing = isCapturing(call);
    if (capturing && nothingToDo(call)) {
      return; // and the hosts need not meet
    }
    PeerRegistration registration = registrar.get(call);
    if (!isKnown(registration, call) || meetsEachTime(call) && !capturing) {
      requireNoCapture(call, call.kind() == Kind.ALL_REDUCE ? REGISTER : RUN_BEFORE);
      long met = registrar.publish(call);
      group.run(call, NOTHING);
      if (nothingToDo(call)) {
        return;
      }
      registration = registrar.getOrRegister(call, met);
    }
    queue.enqueue(registration, registrar.plan(registration, call), call, capturing);
  }

  /**
   * Whether the hosts need no first rendezvous for a call: its buffers are registered. For a
   * broadcast the hosts must have compared the root, too, because kernels do not; then it has a
   * plan.
   */
  private static boolean isKnown(PeerRegistration registration, CollectiveCall call) {
    return registration != null
        && (call.kind() != Kind.BROADCAST || registration.plan(call) != null);
  }

  /**
   * Whether the hosts meet before each such call that is not captured, and not only before the
   * first one. They do for a broadcast, a gather and a scatter, because a rank may come with
   * another root or buffer than before. They do for an all-reduce of a padded buffer, because
   * kernels do not compare how much of it is used. For other reductions they do if values must be
   * finite, because only at a rendezvous the ranks learn of each other's values that are not.
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
    group.run(call, enqueueMessage);
  }

  private void enqueueMessage(CollectiveCall call) {
    if (call.buffer().count() > 0) {
      queue.enqueue(messages, call);
    }
  }

  @Override
  public void exchange(List<CollectiveCall> all) {
    MessageRounds.oneByOne(all, group.rank(), this::run);
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      try {
        errors.check();
        requireNoCapture(call, REGISTER);
        long met = registrar.publish(call);
        group.meetToPrepare(call);
        boolean alone = group.size() == 1 || call.blockCount(group.size()) == 0;
        if (!alone && !PeerRegistrar.isOneSided(call.kind())) {
          registrar.getOrRegister(call, met);
        }
      } catch (DeviceException e) {
        throw queue.failed(e);
      }
    }
  }

  @Override
  public CudaBuffer fuse(List<AbstractDeviceBuffer> parts, ReduceOp op, String name) {
    List<CudaBuffer> own = new ArrayList<>();
    long count = 0;
    for (AbstractDeviceBuffer part : parts) {
      if (part.isPadded()) {
        return null; // the hosts compare its padding in each call
      }
      if (part.count() > 0) {
        own.add((CudaBuffer) part);
      }
      count += part.count();
    }
    if (!planner.fuses(parts.get(0).type(), op, count, own.size())) {
      return null;
    }
    CudaBuffer whole = registrar.fuse(own, count);
    whole.named(name);
    try {
      CollectiveCall call = CollectiveCall.allReduce(whole, op);
      requireNoCapture(call, RUN_BEFORE);
      prepare(call);
      if (registrar.get(call) != null) {
        return whole;
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, whole);
      throw e;
    }
    whole.close();
    return null; // a rank cannot map another's parts
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
    return errors.state();
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
        return new PeerAutotune(gpu, memory.communicator(), planner, order, all).measure(layout);
      }
    }
  }

  private boolean isCapturing(CollectiveCall call) {
    return ((CudaBuffer) call.buffer()).stream().isCapturing();
  }

  /** Throws during capture: a rendezvous of the hosts cannot become part of a graph. */
  private void requireNoCapture(CollectiveCall call, String remedy) {
    if (isCapturing(call)) {
      throw new IllegalStateException(
          "the stream is being captured: buffer=%s, rank=%s; %s"
              .formatted(call.buffer(), group.rank(), remedy));
    }
  }

  @Override
  public void closes(CUstream closing) {
    synchronized (group) {
      order.streamCloses(closing);
    }
  }

  @Override
  public void afterWaiting() {
    errors.afterWaiting();
  }

  @Override
  public void check(boolean together) {
    errors.check();
    if (together) {
      synchronized (group) {
        group.requireUsable();
        errors.begin();
      }
    }
  }

  private void depart() {
    if (depart != null) {
      CUstream stream = DriverAccess.stream(device.stream()).handle();
      depart.enqueue(stream);
      gpu.api().awaitStream(stream);
    }
  }

  @Override
  public void close() {
    synchronized (group) {
      gpu.waits().unwatch(this);
      boolean broken = group.isBroken();
      errors.stop(broken);
      Resources.closeAll(
          order::await,
          this::depart,
          () -> errors.throwUnseen(broken),
          () -> gpu.gate().run(() -> Resources.closeAll(registrar, planner, memory, finite)),
          order,
          unmapFlags::setAllUnmapped, // even after a failure, so that others can free their memory
          share,
          mailbox,
          report);
    }
  }
}

package org.gradientsync.cuda.internal.peer;

import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Registers the buffers of calls, so that kernels can name them by a number and reach each other's
 * memory, and keeps the registrations until their buffers are closed. All ranks register, and
 * forget, in the same order. The caller holds the group's lock.
 */
final class PeerRegistrar implements AutoCloseable {
  private final RankGroup group;
  private final CudaDevice device;
  private final Gpu gpu;
  private final Communicator communicator;
  private final PeerMemory memory;
  private final PeerUnmapFlags unmapFlags;
  private final long ownMailbox;
  private final PeerPlanner planner;
  private final PeerNames names;
  private final PeerOrder order;
  private final PeerProgress progress;
  private final PlanCache<PeerRegistration> collectives;

  /**
   * A cache of its own: gathers and scatters differ between ranks, and would evict {@link
   * #collectives} in different orders.
   */
  private final PlanCache<PeerRegistration> oneSided;

  private final CollectiveCall lookup = new CollectiveCall();

  /** The parts of what {@link #fuse} has returned. */
  private final Map<CudaBuffer, List<CudaBuffer>> fused = new IdentityHashMap<>();

  /** Ended registrations whose addresses may still be in the caller's graphs; released on close. */
  private final List<AutoCloseable> keptForGraphs = new ArrayList<>();

  private int lastNumber;
  private boolean closing;

  PeerRegistrar(
      RankGroup group,
      CudaDevice device,
      PeerMemory memory,
      PeerUnmapFlags unmapFlags,
      long ownMailbox,
      PeerPlanner planner,
      PeerNames names,
      PeerOrder order,
      PeerProgress progress) {
    this.group = group;
    this.device = device;
    gpu = DriverAccess.gpu(device);
    communicator = memory.communicator();
    this.memory = memory;
    this.unmapFlags = unmapFlags;
    this.ownMailbox = ownMailbox;
    this.planner = planner;
    this.names = names;
    this.order = order;
    this.progress = progress;
    collectives = new PlanCache<>(group);
    oneSided = new PlanCache<>(group);
  }

  /**
   * Whether one rank has other buffers than the others, so that it may come with new ones while the
   * others come with those of the call before. Then the hosts meet for each call.
   */
  static boolean isOneSided(Kind kind) {
    return kind == Kind.GATHER || kind == Kind.SCATTER;
  }

  private static boolean isInPlace(Kind kind) {
    return kind == Kind.ALL_REDUCE || kind == Kind.BROADCAST;
  }

  private PlanCache<PeerRegistration> cache(Kind kind) {
    return isOneSided(kind) ? oneSided : collectives;
  }

  /**
   * What a call is registered under. All-reduces and broadcasts of a buffer share a registration;
   * other collectives have one for each call.
   */
  private CollectiveCall key(CollectiveCall call) {
    return isInPlace(call.kind())
        ? lookup.set(Kind.ALL_REDUCE, call.in(), call.in(), null, RankGroup.NO_RANK)
        : call;
  }

  /** The registration of a call's buffers on this rank, or null. Allocates nothing. */
  PeerRegistration get(CollectiveCall call) {
    return cache(call.kind()).get(key(call));
  }

  /**
   * Publishes, before the ranks meet for a call, what its buffers are registered under on this
   * rank. Waits for nobody. Allocates nothing.
   *
   * @return the number of calls that have met before, for {@link #getOrRegister}
   */
  long publish(CollectiveCall call) {
    PeerRegistration known = get(call);
    long met = group.deviceCalls().met();
    progress.publishRegistration(met, known == null ? 0 : known.number);
    return met;
  }

  /**
   * The registration of a call's buffers. All ranks ask for it, after they have met for the call.
   * If they have not all published the same number, they register the buffers now; otherwise it
   * allocates nothing. Null for fused parts that a rank cannot map.
   *
   * @param met from {@link #publish}
   */
  PeerRegistration getOrRegister(CollectiveCall call, long met) {
    if (progress.isRegistered(met)) {
      return get(call);
    }
    cache(call.kind()).forget(key(call));
    prepare(
        () -> {
          List<CudaBuffer> parts = fused.get(call.in()); // or null
          if (parts != null) {
            registerFused(call, parts);
          } else if (isInPlace(call.kind())) {
            boolean maps = planner.needsMapping(call);
            registerInPlace((CudaBuffer) call.in(), maps);
          } else {
            registerBlocks(call);
          }
        });
    return get(call);
  }

  /** A buffer for calls that reduce the parts in their own memory. It is yet to be registered. */
  CudaBuffer fuse(List<CudaBuffer> parts, long count) {
    CudaBuffer first = parts.get(0);
    CudaBuffer whole = device.wrap(first.type(), first.address(), count, first.stream());
    fused.put(whole, parts);
    whole.onClose(() -> fused.remove(whole));
    return whole;
  }

  /** The plan of a call, made now if there is none. */
  PeerPlan plan(PeerRegistration registration, CollectiveCall call) {
    PeerPlan known = registration.plan(call);
    if (known != null) {
      return known;
    }
    prepare(() -> keep(registration, call, () -> planner.inPlace(registration, call)));
    if (call.kind() == Kind.BROADCAST) {
      memory.sharing().planned(communicator); // the hosts meet for each broadcast
    }
    return registration.plan(call);
  }

  /** Makes a plan, for which the driver may load kernels. */
  private void keep(PeerRegistration registration, CollectiveCall call, Supplier<PeerPlan> made) {
    gpu.gate().run(() -> registration.keep(call, made.get()));
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

  /**
   * Registers a buffer for all-reduces and broadcasts. Collective.
   *
   * @param map whether the kernels access other ranks' buffers
   */
  PeerRegistration registerInPlace(CudaBuffer own, boolean map) {
    boolean sparing = agreeOnNumber(own);
    PeerMemory.Mapped[] mapped = map ? memory.share(own.address()) : null;
    long[] addresses = new long[group.size()];
    addresses[group.rank()] = own.address();
    if (mapped != null) {
      for (int peer = 0; peer < addresses.length; peer++) {
        addresses[peer] = mapped[peer].address();
      }
      keepUntilUnmapped(own);
    }
    PeerRegistration registration =
        new PeerRegistration(
            lastNumber, own.type(), own.count(), sparing, addresses, mapped, null, null);
    // Load kernels before any rank may run one: loading can block on a running kernel, which waits
    // for the other ranks.
    String reason = "";
    try {
      for (ReduceOp op : memory.sharing().plannedFirst(own.type())) {
        plan(registration, CollectiveCall.allReduce(own, op));
      }
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    agree(registration, reason);
    keep(own, registration);
    return registration;
  }

  /** Registers what {@link #fuse} has returned, unless a rank cannot map another's parts. */
  private void registerFused(CollectiveCall call, List<CudaBuffer> buffers) {
    CudaBuffer whole = (CudaBuffer) call.in();
    boolean sparing = agreeOnNumber(whole);
    PeerMemory.Mapped[] mapped = shareAll(buffers);
    if (mapped == null) {
      return;
    }
    PeerParts parts = null;
    String reason = "";
    try {
      parts = new PeerParts(device, buffers, mapped);
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    PeerRegistration registration =
        new PeerRegistration(
            lastNumber, whole.type(), whole.count(), sparing, new long[0], mapped, null, parts);
    try {
      if (parts != null) {
        buffers.forEach(this::keepUntilUnmapped);
        plan(registration, call);
      }
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    agree(registration, reason);
    keep(whole, registration);
  }

  private void keep(CudaBuffer own, PeerRegistration registration) {
    keep(CollectiveCall.allReduce(own, null), registration);
    names.add(lastNumber, own);
  }

  /** Each rank's memory of each buffer; null on all ranks if a rank cannot map another's. */
  private PeerMemory.Mapped[] shareAll(List<CudaBuffer> buffers) {
    List<PeerMemory.Mapped> all = new ArrayList<>();
    for (CudaBuffer buffer : buffers) {
      PeerMemory.Mapped[] mapped = memory.share(buffer.address());
      if (mapped == null) {
        memory.unmap(all.toArray(PeerMemory.Mapped[]::new));
        return null;
      }
      all.addAll(Arrays.asList(mapped));
    }
    return all.toArray(PeerMemory.Mapped[]::new);
  }

  private void registerBlocks(CollectiveCall call) {
    boolean sparing = agreeOnNumber((CudaBuffer) call.buffer());
    long count = call.blockCount(group.size());
    boolean pushes = planner.pushes(call, count);
    boolean puts = !pushes && !call.kind().reduces();
    CudaBuffer out = (CudaBuffer) call.out();
    PeerMemory.Mapped[] mapped = null;
    CudaBuffer copy = null;
    if (puts) {
      // Ranks without an output take part with memory that the others have mapped already.
      mapped = memory.share(out == null ? ownMailbox : out.address());
      if (mapped == null) {
        copy =
            out == null
                ? null
                : Unclosed.exempt(device.allocate(out.type(), out.count(), out.stream()));
        mapped = memory.share(copy == null ? ownMailbox : copy.address());
      }
    }
    long[] addresses =
        mapped == null
            ? null
            : Arrays.stream(mapped).mapToLong(PeerMemory.Mapped::address).toArray();
    PeerRegistration registration =
        new PeerRegistration(
            lastNumber, call.buffer().type(), count, sparing, addresses, mapped, copy, null);
    String reason = "";
    try {
      if (puts && mapped == null) {
        reason = "a rank cannot map another rank's GPU memory";
      } else {
        if (puts && out != null) {
          keepUntilUnmapped(copy != null ? copy : out);
        }
        keep(
            registration,
            call,
            () ->
                pushes
                    ? planner.push(registration, call)
                    : puts ? planner.put(registration, call) : planner.stream(registration, call));
      }
    } catch (DeviceException e) {
      reason = e.getMessage();
    }
    agree(registration, reason);
    keep(call, registration);
    names.addCollective(lastNumber, group.deviceCalls().describe(call));
  }

  /** Throws on all ranks if one has not loaded its kernels. */
  private void agree(PeerRegistration registration, String reason) {
    try {
      Agreement.requireAll(communicator, reason);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> release(registration));
      throw e;
    }
  }

  private void keep(CollectiveCall key, PeerRegistration registration) {
    registration.onClose(() -> end(registration));
    cache(key.kind()).put(key, registration);
  }

  /**
   * Sets {@link #lastNumber} to a number that is new on all ranks. Returns whether the streams of
   * all ranks leave most of the GPU to other work.
   */
  private boolean agreeOnNumber(CudaBuffer own) {
    long[] number = {lastNumber, DriverAccess.stream(own.stream()).isSparing() ? 0 : 1};
    communicator.allReduce(LongBuffer.wrap(number), ReduceOp.MAX);
    lastNumber = (int) number[0] + 1;
    if (lastNumber > PeerTag.MAX_REGISTRATIONS) {
      throw new GradientSyncException(
          ("too many buffers have been registered, rank=%s, limit=%s;"
                  + " reuse buffers, or create a new sync")
              .formatted(group.rank(), PeerTag.MAX_REGISTRATIONS));
    }
    return number[1] == 0;
  }

  private void keepUntilUnmapped(CudaBuffer shared) {
    gpu.memory()
        .keepUntil(gpu.api().allocationOf(shared.address()), unmapFlags.isUnmapped(lastNumber));
  }

  private void end(PeerRegistration registration) {
    if (registration.captured && !closing) {
      keptForGraphs.add(() -> release(registration));
    } else {
      Resources.closeAll(order::await, () -> release(registration));
    }
  }

  private void release(PeerRegistration registration) {
    PeerMemory.Mapped[] mapped = registration.mapped;
    Resources.closeAll(
        registration::closePlans,
        mapped == null ? null : () -> memory.unmap(mapped),
        mapped == null ? null : () -> unmapFlags.setUnmapped(registration.number),
        registration.copy,
        registration.parts);
  }

  /** Ends all registrations, after the last call. */
  @Override
  public void close() {
    closing = true;
    Resources.closeAll(collectives, oneSided, () -> Resources.closeAll(keptForGraphs));
  }
}

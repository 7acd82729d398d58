package org.gradientsync.cuda;

import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.collective.Group;
import org.gradientsync.collective.GroupCommunicator;
import org.gradientsync.collective.PlanCache;
import org.gradientsync.spi.Reducer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reducer for GPUs of one node that are joined by NVLink: one kernel on each, which write into
 * each other's memory. After a buffer's first call, a call is one launch and nothing else: no
 * message, no wait, no allocation. The kernels themselves compare what the ranks ask for.
 */
final class PeerReducer implements Reducer {
  static final String NAME = "peer";

  private static final int REMEMBERED = 1024; // registrations, for the texts of errors
  private static final Logger log = LoggerFactory.getLogger(PeerReducer.class);

  private final Group group;
  private final CudaDevice device;
  private final GroupCommunicator communicator;
  private final PeerPaths paths;
  private final PeerLedger ledger;
  private final PeerMailbox mailbox;
  private final PeerReport report;
  private final PeerPlanner planner;
  private final PeerBudget.Share share;
  private final PlanCache<PeerRegistration> registrations;
  private final Map<Integer, String> names =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, String> eldest) {
          return size() > REMEMBERED;
        }
      };
  private final CudaEvent ordered;
  private final PeerLaunch notice;
  private final Runnable check = this::check;
  private int lastNumber;
  private CudaStream lastStream;
  private boolean captured;

  PeerReducer(
      Group group,
      CudaDevice device,
      PeerPaths paths,
      PeerLedger ledger,
      PeerMailbox mailbox,
      PeerReport report,
      PeerPlanner planner,
      PeerBudget.Share share) {
    this.group = group;
    this.device = device;
    this.communicator = paths.communicator();
    this.paths = paths;
    this.ledger = ledger;
    this.mailbox = mailbox;
    this.report = report;
    this.planner = planner;
    this.share = share;
    registrations = new PlanCache<>(group, this::end);
    notice = group.size() > 1 ? planner.notice() : null;
    ordered = device.createEvent(false);
    device.watch(check);
    if (notice != null) {
      group.onLongWait(this::tellOthers);
    }
  }

  /**
   * This rank's host waits for the others in a call that has no kernel. If one of them is in a
   * kernel that waits for this rank, neither would ever end.
   */
  private void tellOthers() {
    if (captured || lastStream != null && lastStream.isClosed()) {
      return; // a replay may be under way that this rank's host does not know of, or a call
    }
    device.makeCurrent();
    notice.enqueue((lastStream == null ? device.stream() : lastStream).handle());
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      check();
      group.requireUsable();
      PeerRegistration registration = registrations.get(own);
      if (registration == null) {
        group.meetForAllReduce(own, op);
        if (nothingToDo(own)) {
          return;
        }
        registration = register(own);
      }
      enqueue(plan(registration, op), own.stream());
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      check();
      group.meetForBroadcast(own, root);
      if (nothingToDo(own)) {
        return;
      }
      PeerRegistration registration = registrations.get(own);
      if (anyWithout(registration)) {
        registrations.forget(own);
        registration = register(own);
      }
      PeerPlan plan = registration.broadcast(root);
      if (plan == null) {
        plan = planner.broadcast(registration, root);
        registration.keepBroadcast(root, plan);
      }
      enqueue(plan, own.stream());
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      check();
      group.meetForRegistration(own);
      if (!nothingToDo(own)) {
        registrations.forget(own);
        register(own);
      }
    }
  }

  private PeerPlan plan(PeerRegistration registration, ReduceOp op) {
    PeerPlan plan = registration.plan(op);
    if (plan == null) {
      plan = planner.reduction(registration, op);
      registration.keep(op, plan);
    }
    return plan;
  }

  /** Measures; see {@link PeerAutotune}. Null if buffers cannot be mapped. Collective. */
  long[] autotune(PeerLayout layout) {
    synchronized (group) {
      long most = layout.mostBytes(PeerWay.TWO_SHOT);
      try (CudaBuffer scratch =
          device.allocate(DataType.FLOAT32, PeerAutotune.elements(most), device.stream())) {
        device.stream().await();
        PeerRegistration all = register(scratch, true);
        if (all.mapped == null) {
          return null;
        }
        return new PeerAutotune(
                device,
                communicator,
                planner,
                bytes ->
                    new PeerRegistration(
                        all.number,
                        all.type,
                        PeerAutotune.elements(bytes),
                        all.addresses,
                        all.mapped))
            .measure(layout);
      }
    }
  }

  private boolean nothingToDo(CudaBuffer buffer) {
    return group.size() == 1 || buffer.count() == 0;
  }

  /** Whether the ranks' buffers are not registered together; the same answer on all of them. */
  private boolean anyWithout(PeerRegistration registration) {
    long number = registration == null ? 0 : registration.number;
    long[] numbers = {number, -number};
    communicator.allReduce(LongBuffer.wrap(numbers), ReduceOp.MIN);
    return numbers[0] == 0 || numbers[0] != -numbers[1];
  }

  private PeerRegistration register(CudaBuffer own) {
    return register(own, planner.needsMapping(own.sizeInBytes()));
  }

  private PeerRegistration register(CudaBuffer own, boolean map) {
    long[] number = {lastNumber};
    communicator.allReduce(LongBuffer.wrap(number), ReduceOp.MAX);
    lastNumber = (int) number[0] + 1;
    if (lastNumber > PeerTag.MAX_REGISTRATIONS) {
      throw new GradientSyncException(
          "too many buffers have been registered, rank="
              + group.rank()
              + ", limit="
              + PeerTag.MAX_REGISTRATIONS
              + "; reuse buffers, or create a new sync");
    }
    PeerPaths.Mapped[] mapped = map ? paths.share(own.address()) : null;
    long[] addresses = new long[group.size()];
    addresses[group.rank()] = own.address();
    if (mapped != null) {
      for (int peer = 0; peer < addresses.length; peer++) {
        addresses[peer] = mapped[peer].address();
      }
      device.lend(device.api().allocationOf(own.address())[0], ledger.terms(lastNumber));
    } else {
      ledger.ended(lastNumber);
    }
    PeerRegistration registration =
        new PeerRegistration(lastNumber, own.type(), own.count(), addresses, mapped);
    // Kernels are loaded before anybody's may run: loading can wait for a kernel that waits for
    // others.
    plan(registration, own.type().isFloatingPoint() ? ReduceOp.AVERAGE : ReduceOp.SUM);
    communicator.barrier();
    registrations.put(own, registration);
    names.put(lastNumber, own.type() + "[" + own.count() + "]");
    return registration;
  }

  /** Allocates nothing. */
  private void enqueue(PeerPlan plan, CudaStream stream) {
    CUstream handle = stream.handle();
    device.makeCurrent();
    if (device.api().isCapturing(handle)) {
      plan.enqueueEach(handle);
      captured = true;
      return;
    }
    if (stream != lastStream) {
      // All ranks' kernels must run in the order of the calls, whatever their streams.
      if (lastStream != null && !lastStream.isClosed()) {
        ordered.record(lastStream);
        stream.waitFor(ordered);
      }
      lastStream = stream;
    }
    plan.enqueue(handle);
  }

  /** Throws what a kernel has found. Looked at before each call, and when the host has waited. */
  private void check() {
    int failure = report.failure();
    if (failure == PeerReport.NONE) {
      return;
    }
    synchronized (group) {
      if (report.failure() == PeerReport.NONE) {
        return; // another thread has thrown it
      }
      if (failure == PeerReport.MISMATCH) {
        String table = table();
        report.clear();
        throw new MismatchedCallException(table);
      }
      if (failure == PeerReport.OTHER_CALL) {
        MismatchedCallException e = new MismatchedCallException(table());
        group.lost("the ranks' calls did not match", e);
        throw e;
      }
      throw group.lost(cause(failure), null);
    }
  }

  private String table() {
    StringBuilder text =
        new StringBuilder("the ranks' calls do not match, rank=" + group.rank() + ":");
    for (int peer = 0; peer < group.size(); peer++) {
      int tag = report.tagOf(peer);
      boolean here = tag == PeerTag.GAVE_UP || report.callOf(peer) >= report.call();
      text.append("\n  rank ").append(peer).append(": ").append(here ? describe(tag) : "none yet");
    }
    return text.toString();
  }

  private String describe(int tag) {
    if (tag == PeerTag.ELSEWHERE) {
      return "another call, in which it waits for the others";
    }
    if (tag == PeerTag.GAVE_UP) {
      return "gave up, call=" + report.call();
    }
    String name = names.getOrDefault(PeerTag.registration(tag), "a buffer");
    String operation = PeerTag.operation(tag);
    return (operation.equals("broadcast")
            ? "broadcast(" + name
            : "allReduce(" + name + ", " + operation)
        + "), registration="
        + PeerTag.registration(tag)
        + ", call="
        + report.call();
  }

  private String cause(int failure) {
    List<Integer> gaveUp = new ArrayList<>();
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < group.size(); peer++) {
      if (report.tagOf(peer) == PeerTag.GAVE_UP) {
        gaveUp.add(peer);
      } else if (report.callOf(peer) < report.call()) {
        missing.add(peer);
      }
    }
    StringBuilder text =
        new StringBuilder(failure == PeerReport.TIMED_OUT ? "timed out" : "stopped");
    if (!missing.isEmpty()) {
      text.append(": ").append(ranks(missing)).append(" did not join in time");
    }
    if (!gaveUp.isEmpty()) {
      text.append(": ").append(ranks(gaveUp)).append(" gave up the call");
    }
    if (missing.isEmpty() && gaveUp.isEmpty()) {
      text.append(": a rank stopped in the middle of the call");
    }
    return text.append(", waited=")
        .append(report.waitedNanos() / 1_000_000)
        .append(" ms, timeout=")
        .append(group.timeout())
        .append(", on the GPU in ")
        .append(describe(report.tagOf(group.rank())))
        .toString();
  }

  private static String ranks(List<Integer> ranks) {
    return ranks.size() == 1 ? "rank " + ranks.get(0) : "ranks " + ranks;
  }

  private void end(PeerRegistration registration) {
    device.makeCurrent();
    if (lastStream != null && !lastStream.isClosed()) {
      device.api().awaitStream(lastStream.handle());
    }
    registration.closePlans();
    if (registration.mapped != null) {
      paths.unmap(registration.mapped);
      ledger.ended(registration.number);
    }
  }

  @Override
  public void close() {
    synchronized (group) {
      device.unwatch(check);
      group.onLongWait(() -> {});
      device.makeCurrent();
      if (lastStream != null && !lastStream.isClosed()) {
        device.api().awaitStream(lastStream.handle());
      }
      if (report.failure() != PeerReport.NONE && !group.isBroken()) {
        log.warn("rank {} closes after a failed call that nobody has been told of", group.rank());
      }
      registrations.close();
      planner.close();
      ordered.close();
      paths.close();
      ledger.closed();
      mailbox.close();
      report.close();
      share.close();
    }
  }
}

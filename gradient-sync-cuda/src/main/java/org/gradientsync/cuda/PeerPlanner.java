package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUfunction;
import org.gradientsync.ReduceOp;

/** Chooses the way that a buffer goes, by its size, and prepares the launches. */
final class PeerPlanner implements AutoCloseable {
  private final CudaDevice device;
  private final PeerMailbox mailbox;
  private final PeerReport report;
  private final PeerTuning tuning;
  private final PeerKernels kernels;
  private final CudaStream capture;
  private final int rank;
  private final int ranks;
  private final long timeoutNanos;

  PeerPlanner(
      CudaDevice device,
      PeerMailbox mailbox,
      PeerReport report,
      PeerTuning tuning,
      int rank,
      int ranks,
      long timeoutNanos) {
    this.device = device;
    this.mailbox = mailbox;
    this.report = report;
    this.tuning = tuning;
    this.rank = rank;
    this.ranks = ranks;
    this.timeoutNanos = timeoutNanos;
    kernels = new PeerKernels(device);
    capture = device.createStream();
  }

  /** Whether the ranks need each other's buffers, and not their mailboxes alone. */
  boolean needsMapping(long bytes) {
    return tuning.way(bytes) == PeerWay.STREAM;
  }

  PeerPlan reduction(PeerRegistration registration, ReduceOp op) {
    long bytes = registration.count * registration.type.sizeInBytes();
    PeerWay way = tuning.way(bytes);
    if (way == PeerWay.STREAM && registration.mapped == null) {
      way = PeerWay.TWO_SHOT; // in pieces, all of which go through the mailboxes
    }
    return plan(registration, way, op, PeerTag.of(registration.number, op), 0);
  }

  PeerPlan broadcast(PeerRegistration registration, int root) {
    int tag = PeerTag.ofBroadcast(registration.number);
    return plan(registration, PeerWay.BROADCAST, ReduceOp.SUM, tag, root);
  }

  /** What tells the others' kernels that this rank comes no more. */
  PeerLaunch goodbye() {
    return new PeerLaunch(device.api(), kernels.goodbye(), PeerWay.BROADCAST, 1)
        .mailboxes(mailbox, PeerWay.BROADCAST, rank, ranks);
  }

  PeerPlan plan(PeerRegistration registration, PeerWay way, ReduceOp op, int tag, int root) {
    kernels.load(registration.type);
    CUfunction function = kernels.function(way, registration.type, op);
    int most = tuning.mostBlocks(kernels.mostBlocks(function, way));
    PeerLayout layout = mailbox.layout();
    int size = registration.type.sizeInBytes();
    long piece = Math.min(registration.count, layout.mostBytes(way) / size);
    List<PeerLaunch> launches = new ArrayList<>();
    for (long first = 0; first < registration.count; first += piece) {
      long count = Math.min(piece, registration.count - first);
      int blocks = layout.blocks(way, registration.type, count, most);
      long[] addresses = registration.addresses.clone();
      for (int peer = 0; peer < ranks; peer++) {
        addresses[peer] += addresses[peer] == 0 ? 0 : first * size;
      }
      launches.add(
          new PeerLaunch(device.api(), function, way, blocks)
              .mailboxes(mailbox, way, rank, ranks)
              .elements(addresses, count)
              .waiting(report, timeoutNanos)
              .call(tag, op.ordinal(), root, layout.batches(registration.type, count, blocks)));
    }
    return new PeerPlan(device, capture, launches.toArray(PeerLaunch[]::new));
  }

  @Override
  public void close() {
    capture.close();
    kernels.close();
  }
}

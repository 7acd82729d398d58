package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import jcuda.driver.CUfunction;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;

/** Chooses the algorithm for a buffer by its size, and prepares the launches. */
final class PeerPlanner implements AutoCloseable {
  /** As the kernels of put.cuh and message.cu are bound to. */
  static final int THREADS = 512;

  private static final Set<Kind> PUSHED =
      EnumSet.of(Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL);

  private final Gpu gpu;
  private final PeerMailbox mailbox;
  private final PeerReport report;
  private final PeerTuning tuning;
  private final PeerKernels kernels;
  private final GpuStream capture;
  private final DataType wire;
  private final long found;
  private final int rank;
  private final int ranks;
  private final long timeoutNanos;

  /**
   * @param wire the type in which FLOAT32 gradients travel, or null
   * @param found the device address for findings of NaN and infinities; 0 for no check
   */
  PeerPlanner(
      Gpu gpu,
      PeerMailbox mailbox,
      PeerReport report,
      PeerTuning tuning,
      DataType wire,
      long found,
      int rank,
      int ranks,
      long timeoutNanos) {
    this.gpu = gpu;
    this.mailbox = mailbox;
    this.report = report;
    this.tuning = tuning;
    this.wire = wire;
    this.found = found;
    this.rank = rank;
    this.ranks = ranks;
    this.timeoutNanos = timeoutNanos;
    kernels = new PeerKernels(gpu);
    capture = GpuStream.create(gpu);
  }

  /** Whether the kernels access other ranks' buffers, and not only their mailboxes. */
  boolean needsMapping(CollectiveCall call) {
    DataType type = call.in().type();
    long count = call.in().count();
    PeerFormat format = PeerFormat.of(type, ReduceOp.SUM, wire);
    return algorithm(format, count, ReduceOp.SUM) == PeerAlgorithm.STREAM
        || call.kind() == Kind.BROADCAST && !tuning.pushesBroadcast(count * type.sizeInBytes());
  }

  private PeerAlgorithm algorithm(PeerFormat format, long count, ReduceOp op) {
    PeerAlgorithm algorithm = tuning.algorithm(count * format.wire().sizeInBytes());
    if (algorithm == PeerAlgorithm.STREAM && format.isNarrowed()) {
      algorithm =
          tuning.takesWholeSms() ? PeerAlgorithm.STAGED : PeerAlgorithm.TWO_SHOT; // in pieces
    }
    return algorithm.takes(format, op, checksFinite(format.type()))
        ? algorithm
        : PeerAlgorithm.TWO_SHOT;
  }

  /**
   * Whether several buffers are reduced as one in their own memory: if they are large together, and
   * not too small on average.
   */
  boolean fuses(DataType type, ReduceOp op, long count, int parts) {
    PeerFormat format = PeerFormat.of(type, op, wire);
    return ranks > 1
        && !checksFinite(type)
        && algorithm(format, count, op) == PeerAlgorithm.STREAM
        && parts <= count / PeerLayout.batchElements(type) / 4;
  }

  /** The plan of an all-reduce or a broadcast. */
  PeerPlan inPlace(PeerRegistration registration, CollectiveCall call) {
    if (call.kind() == Kind.BROADCAST) {
      return broadcast(registration, call.root());
    }
    return registration.parts == null
        ? reduction(registration, call.op())
        : reductionOfParts(registration, call.op());
  }

  private PeerPlan reductionOfParts(PeerRegistration registration, ReduceOp op) {
    PeerFormat format = PeerFormat.plain(registration.type);
    DataType wire = format.wire();
    PeerParts parts = registration.parts;
    long count = parts.batches() * PeerLayout.batchElements(wire);
    PeerLaunch launch = inChunks(kernels.streamParts(format), registration, wire, count);
    launch
        .local(parts.address())
        .elements(new long[ranks], count)
        .call(
            PeerTag.of(registration.number, op),
            op.ordinal(),
            parts.count(),
            mailbox.layout().batches(PeerAlgorithm.STREAM, wire, count, launch.blocks()));
    return new PeerPlan(gpu, capture, launch);
  }

  /**
   * A launch of a kernel that goes as {@link PeerAlgorithm#STREAM}.
   *
   * @param count the elements of all shards or blocks
   */
  private PeerLaunch inChunks(
      CUfunction function, PeerRegistration registration, DataType wire, long count) {
    PeerAlgorithm chunks = PeerAlgorithm.STREAM;
    int perSm = kernels.perSm(function, chunks);
    int most = tuning.mostBlocks(perSm, kernels.sms(), chunks, registration.sparing);
    int blocks = mailbox.layout().blocks(chunks, wire, count, most);
    return new PeerLaunch(gpu.api(), function, chunks, blocks)
        .mailboxes(mailbox, chunks, rank, ranks)
        .waiting(report, timeoutNanos);
  }

  private PeerPlan reduction(PeerRegistration registration, ReduceOp op) {
    PeerFormat format = PeerFormat.of(registration.type, op, wire);
    PeerAlgorithm algorithm = algorithm(format, registration.count, op);
    if (algorithm == PeerAlgorithm.STREAM && registration.mapped == null) {
      algorithm = PeerAlgorithm.TWO_SHOT; // in pieces, which all go through the mailboxes
    } else if (algorithm == PeerAlgorithm.STREAM
        && registration.sparing
        && tuning.takesWholeSms()) {
      algorithm = PeerAlgorithm.STREAM_FEW_CTAS;
    }
    int tag = PeerTag.of(registration.number, op);
    return plan(registration, format, algorithm, op, tag, 0, checksFinite(registration.type));
  }

  private PeerPlan broadcast(PeerRegistration registration, int root) {
    int tag = PeerTag.ofBroadcast(registration.number);
    PeerFormat format = PeerFormat.plain(registration.type);
    long bytes = registration.count * registration.type.sizeInBytes();
    if (registration.mapped != null && !tuning.pushesBroadcast(bytes)) {
      PeerLaunch launch =
          copying(kernels.put(true), registration, bytes)
              .mailboxes(mailbox, 0, 0, rank, ranks)
              .elements(registration.addresses, bytes)
              .waiting(report, timeoutNanos);
      int tile = PeerLayout.broadcastTile(bytes, ranks, launch.blocks());
      return new PeerPlan(gpu, capture, launch.call(tag, 0, root, tile));
    }
    return plan(registration, format, PeerAlgorithm.BROADCAST, ReduceOp.SUM, tag, root, false);
  }

  private boolean checksFinite(DataType type) {
    return found != 0 && type.isFloatingPoint();
  }

  /**
   * Whether the blocks of a collective are so small that they go in lines.
   *
   * @param count the number of elements of a block
   */
  boolean pushes(CollectiveCall call, long count) {
    int element = format(call.buffer().type(), call.op()).wire().sizeInBytes();
    return PUSHED.contains(call.kind()) && tuning.pushes(count * element);
  }

  /** How elements travel; they are only copied if {@code op} is null. */
  private PeerFormat format(DataType type, ReduceOp op) {
    return op == null ? PeerFormat.plain(type) : PeerFormat.of(type, op, wire);
  }

  /** The plan of a collective whose blocks go in lines. */
  PeerPlan push(PeerRegistration registration, CollectiveCall call) {
    CudaBuffer in = (CudaBuffer) call.in();
    CudaBuffer out = (CudaBuffer) call.out();
    ReduceOp op = call.op();
    DataType type = registration.type;
    long count = registration.count;
    PeerFormat format = format(type, op);
    CUfunction function = kernels.push(format, op);
    long bytes = count * type.sizeInBytes();
    long[] blocks = new long[ranks];
    for (int peer = 0; peer < ranks; peer++) {
      blocks[peer] = in.address() + (call.kind().inputBlocks(ranks) > 1 ? peer * bytes : 0);
    }
    PeerAlgorithm lines = PeerAlgorithm.ONE_SHOT;
    int most =
        tuning.mostBlocks(
            kernels.perSm(function, lines.threads), kernels.sms(), lines, registration.sparing);
    PeerLaunch launch =
        new PeerLaunch(
                gpu.api(),
                function,
                lines.threads,
                mailbox.layout().blocks(lines, format.wire(), count, most))
            .mailboxes(mailbox, lines, rank, ranks)
            .local(out.address())
            .elements(blocks, op == null ? bytes / Short.BYTES : count)
            .waiting(report, timeoutNanos)
            .call(PeerTag.ofCollective(registration.number), op == null ? 0 : op.ordinal(), 0, 1);
    return new PeerPlan(gpu, capture, launch);
  }

  /** The plan of a collective that copies large blocks into the other ranks' mapped outputs. */
  PeerPlan put(PeerRegistration registration, CollectiveCall call) {
    CudaBuffer in = (CudaBuffer) call.in();
    Kind kind = call.kind();
    long bytes = registration.count * registration.type.sizeInBytes();
    long[] blocks = new long[ranks];
    for (int peer = 0; in != null && peer < ranks; peer++) {
      if (kind.hasOutput(peer, call.root())) {
        blocks[peer] =
            registration.addresses[peer] + (kind.outputBlocks(ranks) > 1 ? rank * bytes : 0);
      }
    }
    PeerLaunch launch =
        copying(kernels.put(false), registration, bytes)
            .mailboxes(mailbox, 0, kind.inputBlocks(ranks) > 1 ? bytes : 0, rank, ranks)
            .local(in == null ? 0 : in.address())
            .elements(blocks, bytes)
            .waiting(report, timeoutNanos)
            .call(PeerTag.ofCollective(registration.number), 0, 0, 1);
    return new PeerPlan(gpu, capture, launch);
  }

  /** A launch of a kernel of put.cuh: a block on each SM is enough for the links. */
  private PeerLaunch copying(CUfunction function, PeerRegistration registration, long bytes) {
    int perSm = kernels.perSm(function, THREADS);
    int most = tuning.mostBlocks(perSm, kernels.sms(), registration.sparing);
    return new PeerLaunch(
        gpu.api(),
        function,
        THREADS,
        PeerLayout.blocks(bytes, THREADS, Math.min(most, kernels.sms())));
  }

  /** The plan of a reduction of large blocks, which go in chunks. */
  PeerPlan stream(PeerRegistration registration, CollectiveCall call) {
    CudaBuffer in = (CudaBuffer) call.in();
    CudaBuffer out = (CudaBuffer) call.out();
    Kind kind = call.kind();
    PeerFormat format = format(registration.type, call.op());
    DataType wire = format.wire();
    long bytes = registration.count * registration.type.sizeInBytes();
    long[] addresses = new long[ranks];
    for (int owner = 0; owner < ranks; owner++) {
      if (kind.hasOutput(owner, call.root())) {
        addresses[owner] = in.address() + (kind.inputBlocks(ranks) > 1 ? owner * bytes : 0);
      }
    }
    PeerLaunch launch =
        inChunks(
            kernels.streamBlocks(format, call.op()),
            registration,
            wire,
            registration.count * ranks);
    launch
        .local(out == null ? 0 : out.address())
        .elements(addresses, registration.count)
        .call(
            PeerTag.ofCollective(registration.number),
            call.op().ordinal(),
            0,
            mailbox
                .layout()
                .batchesOfBlocks(PeerAlgorithm.STREAM, wire, registration.count, launch.blocks()));
    return new PeerPlan(gpu, capture, launch);
  }

  /** A launch for messages to or from another rank. Loads the kernel. */
  PeerLaunch message(int peer, boolean sends) {
    CUfunction function = kernels.message(sends);
    kernels.perSm(function, THREADS);
    PeerLayout layout = mailbox.layout();
    return new PeerLaunch(gpu.api(), function, THREADS, 1)
        .mailboxes(mailbox, layout.messageOffset(), layout.messageChunk(), rank, ranks)
        .waiting(report, timeoutNanos)
        .call(PeerTag.ofMessage(peer, sends), 0, peer, 1);
  }

  /** The launch that notifies the other ranks' kernels that this rank departs. */
  PeerLaunch depart() {
    return new PeerLaunch(gpu.api(), kernels.depart(), PeerAlgorithm.BROADCAST, 1)
        .mailboxes(mailbox, PeerAlgorithm.BROADCAST, rank, ranks);
  }

  /**
   * As {@link #reduction}, but with a given algorithm, without compression, and without the check
   * for NaN and infinities.
   */
  PeerPlan plan(PeerRegistration registration, PeerAlgorithm algorithm, ReduceOp op, int tag) {
    return plan(registration, PeerFormat.plain(registration.type), algorithm, op, tag, 0, false);
  }

  private PeerPlan plan(
      PeerRegistration registration,
      PeerFormat format,
      PeerAlgorithm chosen,
      ReduceOp op,
      int tag,
      int root,
      boolean checkFinite) {
    kernels.load(format, op, checkFinite);
    boolean unrolled =
        chosen == PeerAlgorithm.TWO_SHOT
            && PeerAlgorithm.TWO_SHOT_UNROLLED.takes(format, op, checkFinite)
            && goesUnrolled(registration, format);
    PeerAlgorithm algorithm = unrolled ? PeerAlgorithm.TWO_SHOT_UNROLLED : chosen;
    CUfunction function = kernels.function(algorithm, format, op, checkFinite);
    int most =
        tuning.mostBlocks(
            kernels.perSm(function, algorithm), kernels.sms(), algorithm, registration.sparing);
    PeerLayout layout = mailbox.layout();
    DataType wire = format.wire();
    long piece = Math.min(registration.count, layout.mostBytes(algorithm) / wire.sizeInBytes());
    List<PeerLaunch> launches = new ArrayList<>();
    for (long first = 0; first < registration.count; first += piece) {
      long count = Math.min(piece, registration.count - first);
      int blocks = layout.blocks(algorithm, wire, count, most);
      int batches =
          algorithm == PeerAlgorithm.BROADCAST
              ? layout.broadcastParts(count * wire.sizeInBytes())
              : layout.batches(algorithm, wire, count, blocks);
      long[] addresses = registration.addresses.clone();
      for (int peer = 0; peer < ranks; peer++) {
        addresses[peer] += addresses[peer] == 0 ? 0 : first * format.type().sizeInBytes();
      }
      launches.add(
          new PeerLaunch(gpu.api(), function, algorithm, blocks)
              .mailboxes(mailbox, algorithm, rank, ranks)
              .elements(addresses, count)
              .waiting(report, timeoutNanos)
              .checkingFinite(found, first)
              .call(tag, op.ordinal(), root, batches));
    }
    return new PeerPlan(gpu, capture, launches.toArray(PeerLaunch[]::new));
  }

  /**
   * Whether all vectors are whole and aligned. Each rank may decide for itself, because both
   * kernels send the same lines.
   */
  private boolean goesUnrolled(PeerRegistration registration, PeerFormat format) {
    return registration.addresses[rank] % PeerLayout.VECTOR == 0
        && registration.count % (PeerLayout.VECTOR / format.wire().sizeInBytes()) == 0;
  }

  @Override
  public void close() {
    Resources.closeAll(capture, kernels);
  }
}

package org.gradientsync.cuda.internal.nccl;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;

/**
 * Enqueues calls: which functions of NCCL they are made of. Buffers are not empty. Allocates
 * nothing.
 */
final class NcclCollectives {
  private final Nccl nccl;
  private final Gpu gpu;
  private final int rank;
  private final int ranks;

  NcclCollectives(Nccl nccl, Gpu gpu, int rank, int ranks) {
    this.nccl = nccl;
    this.gpu = gpu;
    this.rank = rank;
    this.ranks = ranks;
  }

  void allReduce(long comm, CudaBuffer buffer, ReduceOp op) {
    long address = buffer.address();
    check(
        nccl.allReduce(
            address,
            address,
            buffer.count(),
            NcclCodes.of(buffer.type()),
            NcclCodes.of(op),
            comm,
            stream(buffer)),
        "ncclAllReduce");
  }

  void broadcast(long comm, CudaBuffer buffer, int root) {
    long address = buffer.address();
    check(
        nccl.broadcast(
            address,
            address,
            buffer.count(),
            NcclCodes.of(buffer.type()),
            root,
            comm,
            stream(buffer)),
        "ncclBroadcast");
  }

  /** Enqueues a collective; the arguments are as in {@link org.gradientsync.spi.Reducer#run}. */
  void run(long comm, Collective collective, CudaBuffer in, CudaBuffer out, ReduceOp op, int root) {
    CudaBuffer own = out != null ? out : in;
    int type = NcclCodes.of(own.type());
    long count = collective.blockCount(in, out, ranks);
    long from = in == null ? 0 : in.address();
    long to = out == null ? 0 : out.address();
    long stream = stream(own);
    switch (collective) {
      case ALL_GATHER ->
          check(nccl.allGather(from, to, count, type, comm, stream), "ncclAllGather");
      case REDUCE_SCATTER ->
          check(
              nccl.reduceScatter(from, to, count, type, NcclCodes.of(op), comm, stream),
              "ncclReduceScatter");
      case REDUCE ->
          check(
              nccl.reduce(from, to, count, type, NcclCodes.of(op), root, comm, stream),
              "ncclReduce");
      default -> moveBlocks(comm, collective, from, to, count, own, root, stream);
    }
  }

  /** Moves blocks between single ranks, all at once. A block of this rank's own goes to itself. */
  private void moveBlocks(
      long comm,
      Collective collective,
      long from,
      long to,
      long count,
      CudaBuffer own,
      int root,
      long stream) {
    int type = NcclCodes.of(own.type());
    long bytes = count * own.type().sizeInBytes();
    check(nccl.groupStart(), "ncclGroupStart");
    int sent = NcclResult.SUCCESS;
    int received = NcclResult.SUCCESS;
    for (int peer = 0; peer < ranks; peer++) {
      long source = from + (collective.inputBlocks(ranks) == 1 ? 0 : peer * bytes);
      long target = to + (collective.outputBlocks(ranks) == 1 ? 0 : peer * bytes);
      boolean isInPlace = peer == rank && source == target;
      if (sent == NcclResult.SUCCESS && !isInPlace && sends(collective, peer, root)) {
        sent = nccl.send(source, count, type, peer, comm, stream);
      }
      if (received == NcclResult.SUCCESS && !isInPlace && receives(collective, peer, root)) {
        received = nccl.receive(target, count, type, peer, comm, stream);
      }
    }
    endGroup(sent, received);
  }

  private boolean sends(Collective collective, int peer, int root) {
    return switch (collective) {
      case GATHER -> peer == root;
      case SCATTER -> rank == root;
      default -> true;
    };
  }

  private boolean receives(Collective collective, int peer, int root) {
    return switch (collective) {
      case GATHER -> rank == root;
      case SCATTER -> peer == root;
      default -> true;
    };
  }

  /** Enqueues messages, each on the stream of its buffer, all at once. */
  void exchange(long comm, List<PeerMessage> messages) {
    check(nccl.groupStart(), "ncclGroupStart");
    int sent = NcclResult.SUCCESS;
    int received = NcclResult.SUCCESS;
    for (int i = 0; i < messages.size(); i++) {
      PeerMessage message = messages.get(i);
      CudaBuffer buffer = (CudaBuffer) message.buffer();
      if (buffer.count() == 0) {
        continue;
      }
      int code = message(comm, buffer, message.peer(), message.sends());
      sent = sent == NcclResult.SUCCESS && message.sends() ? code : sent;
      received = received == NcclResult.SUCCESS && !message.sends() ? code : received;
    }
    endGroup(sent, received);
  }

  /** Enqueues one message. */
  void message(DeviceBuffer buffer, long comm, int peer, boolean sends) {
    check(message(comm, (CudaBuffer) buffer, peer, sends), sends ? "ncclSend" : "ncclRecv");
  }

  private int message(long comm, CudaBuffer buffer, int peer, boolean sends) {
    int type = NcclCodes.of(buffer.type());
    return sends
        ? nccl.send(buffer.address(), buffer.count(), type, peer, comm, stream(buffer))
        : nccl.receive(buffer.address(), buffer.count(), type, peer, comm, stream(buffer));
  }

  /** Ends a group also after a failure, so that this thread's next call is not a part of it. */
  private void endGroup(int sent, int received) {
    int ended = nccl.groupEnd();
    check(sent, "ncclSend");
    check(received, "ncclRecv");
    check(ended, "ncclGroupEnd");
  }

  private long stream(CudaBuffer buffer) {
    return gpu.api().handleOf(DriverAccess.stream(buffer.stream()).handle());
  }

  private void check(int code, String call) {
    NcclResult.check(nccl, code, call);
  }
}

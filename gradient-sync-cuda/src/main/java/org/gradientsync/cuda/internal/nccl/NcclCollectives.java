package org.gradientsync.cuda.internal.nccl;

import java.util.List;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;

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

  /** Enqueues a call. */
  void run(long comm, CollectiveCall call) {
    CudaBuffer own = (CudaBuffer) call.buffer();
    int type = NcclCodes.of(own.type());
    long count = call.blockCount(ranks);
    long from = call.in() == null ? 0 : ((CudaBuffer) call.in()).address();
    long to = call.out() == null ? 0 : ((CudaBuffer) call.out()).address();
    long stream = stream(own);
    switch (call.kind()) {
      case ALL_REDUCE ->
          check(
              nccl.allReduce(from, to, count, type, NcclCodes.of(call.op()), comm, stream),
              "ncclAllReduce");
      case BROADCAST ->
          check(nccl.broadcast(from, to, count, type, call.root(), comm, stream), "ncclBroadcast");
      case ALL_GATHER ->
          check(nccl.allGather(from, to, count, type, comm, stream), "ncclAllGather");
      case REDUCE_SCATTER ->
          check(
              nccl.reduceScatter(from, to, count, type, NcclCodes.of(call.op()), comm, stream),
              "ncclReduceScatter");
      case REDUCE ->
          check(
              nccl.reduce(
                  from, to, count, type, NcclCodes.of(call.op()), call.root(), comm, stream),
              "ncclReduce");
      case SEND, RECEIVE -> check(message(comm, call), call.sends() ? "ncclSend" : "ncclRecv");
      default -> moveBlocks(comm, call.kind(), from, to, count, own, call.root(), stream);
    }
  }

  /** Moves blocks between single ranks, all at once. A block of this rank's own goes to itself. */
  private void moveBlocks(
      long comm, Kind kind, long from, long to, long count, CudaBuffer own, int root, long stream) {
    int type = NcclCodes.of(own.type());
    long bytes = count * own.type().sizeInBytes();
    check(nccl.groupStart(), "ncclGroupStart");
    int sent = NcclResult.SUCCESS;
    int received = NcclResult.SUCCESS;
    for (int peer = 0; peer < ranks; peer++) {
      long source = from + (kind.inputBlocks(ranks) == 1 ? 0 : peer * bytes);
      long target = to + (kind.outputBlocks(ranks) == 1 ? 0 : peer * bytes);
      boolean isInPlace = peer == rank && source == target;
      if (sent == NcclResult.SUCCESS && !isInPlace && sends(kind, peer, root)) {
        sent = nccl.send(source, count, type, peer, comm, stream);
      }
      if (received == NcclResult.SUCCESS && !isInPlace && receives(kind, peer, root)) {
        received = nccl.receive(target, count, type, peer, comm, stream);
      }
    }
    endGroup(sent, received);
  }

  private boolean sends(Kind kind, int peer, int root) {
    return switch (kind) {
      case GATHER -> peer == root;
      case SCATTER -> rank == root;
      default -> true;
    };
  }

  private boolean receives(Kind kind, int peer, int root) {
    return switch (kind) {
      case GATHER -> rank == root;
      case SCATTER -> peer == root;
      default -> true;
    };
  }

  /** Enqueues messages, each on the stream of its buffer, all at once. */
  void exchange(long comm, List<CollectiveCall> messages) {
    check(nccl.groupStart(), "ncclGroupStart");
    int sent = NcclResult.SUCCESS;
    int received = NcclResult.SUCCESS;
    for (int i = 0; i < messages.size(); i++) {
      CollectiveCall message = messages.get(i);
      if (message.buffer().count() == 0) {
        continue;
      }
      int code = message(comm, message);
      sent = sent == NcclResult.SUCCESS && message.sends() ? code : sent;
      received = received == NcclResult.SUCCESS && !message.sends() ? code : received;
    }
    endGroup(sent, received);
  }

  private int message(long comm, CollectiveCall message) {
    CudaBuffer buffer = (CudaBuffer) message.buffer();
    int type = NcclCodes.of(buffer.type());
    long address = buffer.address();
    return message.sends()
        ? nccl.send(address, buffer.count(), type, message.peer(), comm, stream(buffer))
        : nccl.receive(address, buffer.count(), type, message.peer(), comm, stream(buffer));
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

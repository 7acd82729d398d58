package org.gradientsync.cuda.internal.nccl;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.internal.collectives.MessageRounds;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * Reduces with NCCL. The hosts meet before each call, because NCCL does not compare calls: with
 * different ones it hangs, or writes beyond a buffer. Then each rank enqueues, and nobody waits for
 * a device.
 *
 * <p>The order in which NCCL adds depends on the topology, so sums need not have the bits of other
 * reducers.
 */
final class NcclReducer implements Reducer {
  static final String NAME = "nccl";

  private final RankGroup group;
  private final CudaDevice device;
  private final Gpu gpu;
  private final Nccl nccl;
  private final NcclComm comm; // null if there is one rank
  private final NcclCollectives collectives;
  private final NcclProgress progress;
  private final NcclWatchdog watchdog; // null if there is one rank
  private final Runnable check;

  /**
   * @param comm null if there is one rank; this reducer closes it
   */
  NcclReducer(RankGroup group, CudaDevice device, Nccl nccl, NcclComm comm) {
    this.group = group;
    this.device = device;
    this.nccl = nccl;
    this.comm = comm;
    gpu = DriverAccess.gpu(device);
    collectives = new NcclCollectives(nccl, gpu, group.rank(), group.size());
    progress = new NcclProgress(group, gpu);
    watchdog = comm == null ? null : new NcclWatchdog(group, gpu, nccl, comm, progress);
    check = comm == null ? () -> {} : watchdog::check;
    if (watchdog != null) {
      watchdog.start();
    }
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      try {
        begin(own);
        group.meetForAllReduce(own, op);
        if (nothingToDo(own)) {
          group.finished();
          return;
        }
        GpuStream stream = enqueues("allReduce", own, own.count(), op, RankGroup.NO_RANK);
        try {
          collectives.allReduce(comm.enter(), own, op);
        } finally {
          comm.leave();
        }
        progress.enqueued(stream);
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    CudaBuffer own = (CudaBuffer) buffer;
    synchronized (group) {
      try {
        begin(own);
        group.meetForBroadcast(own, root);
        if (nothingToDo(own)) {
          group.finished();
          return;
        }
        GpuStream stream = enqueues("broadcast", own, own.count(), null, root);
        try {
          collectives.broadcast(comm.enter(), own, root);
        } finally {
          comm.leave();
        }
        progress.enqueued(stream);
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    synchronized (group) {
      try {
        begin((CudaBuffer) buffer);
        group.meetForRegistration(buffer); // NCCL needs no preparation
        group.finished();
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    CudaBuffer own = (CudaBuffer) (out != null ? out : in);
    synchronized (group) {
      try {
        begin(own);
        group.meetFor(collective, in, out, op, root);
        long count = collective.blockCount(in, out, group.size());
        if (count == 0 || group.size() == 1) {
          copyIfAlone((CudaBuffer) in, (CudaBuffer) out, count);
          group.finished();
          return;
        }
        GpuStream stream =
            enqueues(
                Call.Kind.of(collective).text(),
                own,
                count,
                op,
                collective.hasRoot() ? root : RankGroup.NO_RANK);
        try {
          collectives.run(comm.enter(), collective, (CudaBuffer) in, (CudaBuffer) out, op, root);
        } finally {
          comm.leave();
        }
        progress.enqueued(stream);
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
    }
  }

  private void copyIfAlone(CudaBuffer in, CudaBuffer out, long count) {
    if (count > 0 && in.address() != out.address()) {
      device.copy(in, out);
    }
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
        begin(buffer);
        group.meetForMessage(buffer, peer, sends);
        if (buffer.count() == 0) {
          group.finished();
          return;
        }
        GpuStream stream = enqueues(sends ? "send" : "receive", buffer, buffer.count(), null, peer);
        try {
          collectives.message(buffer, comm.enter(), peer, sends);
        } finally {
          comm.leave();
        }
        progress.enqueued(stream);
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
    }
  }

  @Override
  public void exchange(List<PeerMessage> messages) {
    synchronized (group) {
      MismatchedCallException failure = null;
      try {
        for (PeerMessage message : messages) {
          begin((CudaBuffer) message.buffer());
        }
        for (List<PeerMessage> round : MessageRounds.of(messages)) {
          MismatchedCallException mismatch = group.meetForMessages(round);
          failure = failure == null ? mismatch : failure;
          exchangeRound(round);
        }
      } catch (DeviceException | RankLostException e) {
        throw broken(e);
      }
      if (failure != null) {
        throw failure;
      }
    }
  }

  private void exchangeRound(List<PeerMessage> round) {
    PeerMessage last = null;
    for (PeerMessage message : round) {
      last = message.buffer().count() > 0 ? message : last;
    }
    if (last == null) {
      group.finished();
      return;
    }
    CudaBuffer buffer = (CudaBuffer) last.buffer();
    // NCCL makes the streams of a group wait for each other, so one of them shows the end.
    GpuStream stream = enqueues("exchange", buffer, buffer.count(), null, last.peer());
    try {
      collectives.exchange(comm.enter(), round);
    } finally {
      comm.leave();
    }
    progress.enqueued(stream);
  }

  /** Throws what has failed before, and during a capture: hosts do not meet when it is replayed. */
  private void begin(CudaBuffer buffer) {
    check.run();
    if (buffer.stream().isCapturing()) {
      throw new IllegalStateException(
          "the stream is being captured: buffer="
              + buffer
              + ", rank="
              + group.rank()
              + "; with the reducer nccl, call outside of graphs");
    }
  }

  private GpuStream enqueues(String name, CudaBuffer buffer, long count, ReduceOp op, int root) {
    GpuStream stream = DriverAccess.stream(buffer.stream());
    gpu.makeCurrent();
    progress.begin(name, buffer.type(), count, op, root, stream, check);
    return stream;
  }

  private boolean nothingToDo(CudaBuffer buffer) {
    return group.size() == 1 || buffer.count() == 0;
  }

  /** Ends what runs on the device: it may wait for this rank, or for the one that is lost. */
  private RankLostException broken(RuntimeException e) {
    if (watchdog != null) {
      watchdog.check(); // an abort makes calls fail, too
      watchdog.giveUp();
    }
    return e instanceof RankLostException lost
        ? lost
        : group.lost("the call failed in the middle: " + e, e);
  }

  @Override
  public void check(boolean together) {
    check.run();
  }

  @Override
  public List<String> state() {
    return List.of(
        "",
        "nccl: version="
            + NcclLibrary.text(nccl.version())
            + ", library="
            + nccl.library()
            + ", unfinished="
            + progress.unfinished()
            + ", failure="
            + (watchdog == null ? "none" : watchdog.text()));
  }

  @Override
  public void close() {
    synchronized (group) {
      if (comm != null && group.isBroken()) {
        watchdog.giveUp();
        Resources.closeAll(gpu::makeCurrent, watchdog, comm::close, progress);
        return;
      }
      Resources.closeAll(
          gpu::makeCurrent,
          progress::await,
          progress::settle,
          check::run, // what the program has not seen
          watchdog,
          comm == null ? null : comm::close,
          progress);
    }
  }
}

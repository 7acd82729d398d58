package org.gradientsync.cuda.internal.nccl;

import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.RankLostException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.CollectiveCall;
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
  private final Consumer<CollectiveCall> enqueue = this::enqueue;
  private final Consumer<List<CollectiveCall>> exchangeRound = this::exchangeRound;

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
  public void run(CollectiveCall call) {
    synchronized (group) {
      try {
        begin(call.buffer());
        group.run(call, enqueue);
      } catch (DeviceException | RankLostException e) {
        throw failed(e);
      }
    }
  }

  /** Enqueues a call after its rendezvous. */
  private void enqueue(CollectiveCall call) {
    if (call.blockCount(group.size()) == 0) {
      return;
    }
    try {
      if (group.size() == 1) {
        copyAlone(call);
        return;
      }
      GpuStream stream = enqueues(call.kind().text(), call);
      try {
        collectives.run(comm.enter(), call);
      } finally {
        comm.leave();
      }
      progress.enqueued(stream);
    } catch (DeviceException e) {
      throw failed(e);
    }
  }

  private void copyAlone(CollectiveCall call) {
    if (((CudaBuffer) call.in()).address() != ((CudaBuffer) call.out()).address()) {
      device.copy(call.in(), call.out());
    }
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      try {
        begin(call.buffer());
        group.meetToPrepare(call);
      } catch (DeviceException | RankLostException e) {
        throw failed(e);
      }
    }
  }

  @Override
  public void exchange(List<CollectiveCall> messages) {
    synchronized (group) {
      try {
        for (CollectiveCall message : messages) {
          begin(message.buffer());
        }
        group.exchange(messages, exchangeRound);
      } catch (DeviceException | RankLostException e) {
        throw failed(e);
      }
    }
  }

  private void exchangeRound(List<CollectiveCall> round) {
    CollectiveCall last = null;
    for (CollectiveCall message : round) {
      last = message.buffer().count() > 0 ? message : last;
    }
    if (last == null) {
      return;
    }
    try {
      // NCCL makes the streams of a group wait for each other, so one of them shows the end.
      GpuStream stream = enqueues("exchange", last);
      try {
        collectives.exchange(comm.enter(), round);
      } finally {
        comm.leave();
      }
      progress.enqueued(stream);
    } catch (DeviceException e) {
      throw failed(e);
    }
  }

  /** Throws what has failed before, and during a capture: hosts do not meet when it is replayed. */
  private void begin(DeviceBuffer buffer) {
    check.run();
    if (((CudaBuffer) buffer).stream().isCapturing()) {
      throw new IllegalStateException(
          ("the stream is being captured: buffer=%s, rank=%s;"
                  + " with the reducer nccl, call outside of graphs")
              .formatted(buffer, group.rank()));
    }
  }

  private GpuStream enqueues(String name, CollectiveCall call) {
    CudaBuffer buffer = (CudaBuffer) call.buffer();
    GpuStream stream = DriverAccess.stream(buffer.stream());
    gpu.makeCurrent();
    long count = call.blockCount(group.size());
    progress.begin(name, buffer.type(), count, call.op(), call.root(), stream, check);
    return stream;
  }

  /** Ends what runs on the device: it may wait for this rank, or for the one that is lost. */
  private RuntimeException failed(RuntimeException e) {
    if (watchdog != null) {
      watchdog.check(); // an abort makes calls fail, too
      watchdog.giveUp();
    }
    return e instanceof RankLostException ? e : group.failed(e);
  }

  @Override
  public void check(boolean together) {
    check.run();
  }

  @Override
  public List<String> state() {
    return List.of(
        "",
        "nccl: version=%s, library=%s, unfinished=%s, failure=%s"
            .formatted(
                NcclLibrary.text(nccl.version()),
                nccl.library(),
                progress.unfinished(),
                watchdog == null ? "none" : watchdog.text()));
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

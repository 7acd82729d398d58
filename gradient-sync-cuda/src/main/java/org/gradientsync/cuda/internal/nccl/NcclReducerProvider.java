package org.gradientsync.cuda.internal.nccl;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Set;
import java.util.function.Function;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceException;
import org.gradientsync.SumOrder;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;

/** Provides {@code nccl}, for GPUs of one node or of several, where the machine has NCCL. */
public final class NcclReducerProvider implements ReducerProvider {
  private final Function<Settings, Nccl> library;

  /** For the service loader. */
  public NcclReducerProvider() {
    this(settings -> NcclLibrary.ofProcess().get(settings));
  }

  /**
   * @param library finds the library, or throws an {@link UnavailableException}
   */
  NcclReducerProvider(Function<Settings, Nccl> library) {
    this.library = library;
  }

  @Override
  public String name() {
    return NcclReducer.NAME;
  }

  @Override
  public int priority() {
    return 360;
  }

  @Override
  public Set<String> settings() {
    return Set.of(NcclLibrary.SETTING);
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!(context.device() instanceof CudaDevice)) {
      return Availability.no(
          "the gradients are not in GPU memory: device=" + context.device().kind());
    }
    if (!isAllowed(context)) {
      return Availability.no(
          "its order of additions depends on the topology; allow that with order=any, or choose reducer=nccl");
    }
    try {
      library.apply(context.settings());
      return Availability.yes();
    } catch (UnavailableException e) {
      return Availability.no(e.getMessage());
    }
  }

  /**
   * Whether sums may have other bits than those of all other reducers: NCCL's order of additions
   * depends on the topology.
   */
  private static boolean isAllowed(SyncContext context) {
    return context.settings().order() == SumOrder.ANY
        || context.settings().get("reducer").filter(NcclReducer.NAME::equalsIgnoreCase).isPresent();
  }

  @Override
  public Reducer create(SyncContext context) {
    RankGroup group = context.group();
    CudaDevice device = (CudaDevice) context.device();
    Nccl nccl = library.apply(context.settings());
    if (group.size() == 1) {
      return new NcclReducer(group, device, nccl, null);
    }
    Communicator communicator = context.communicator();
    requireSameVersion(communicator, nccl.version());
    byte[] id = new byte[Nccl.ID_BYTES];
    String reason = "";
    if (group.rank() == 0) {
      try {
        NcclResult.check(nccl, nccl.uniqueId(id), "ncclGetUniqueId");
      } catch (DeviceException e) {
        reason = e.getMessage();
      }
    }
    Agreement.requireAll(communicator, reason);
    communicator.broadcast(ByteBuffer.wrap(id), 0);
    NcclStart start = new NcclStart(nccl, DriverAccess.gpu(device), id, group.rank(), group.size());
    start.await(group);
    NcclComm comm = start.comm();
    try {
      Agreement.requireAll(communicator, start.failure());
      return new NcclReducer(group, device, nccl, comm);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, comm == null ? null : comm::abort);
      throw e;
    }
  }

  /** Throws on all ranks: different versions may wait for each other in vain. */
  private static void requireSameVersion(Communicator communicator, int version) {
    ByteBuffer own = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder());
    own.putInt(0, version);
    ByteBuffer all =
        ByteBuffer.allocate(Integer.BYTES * communicator.size()).order(ByteOrder.nativeOrder());
    communicator.allGather(own, all);
    for (int rank = 0; rank < communicator.size(); rank++) {
      int other = all.getInt(rank * Integer.BYTES);
      int first = all.getInt(0);
      if (other != first) {
        throw new UnavailableException(
            "the ranks have different versions of NCCL: %s on rank 0, %s on rank %s"
                .formatted(NcclLibrary.text(first), NcclLibrary.text(other), rank));
      }
    }
  }
}

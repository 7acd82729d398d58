package org.gradientsync.cuda.internal.staged;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Host staging of collectives with an input and an output, and of messages. Copies a piece of each
 * block down to page-locked memory, runs the collective there with a reducer for host memory, and
 * copies the result up.
 */
final class StagedTransfers implements AutoCloseable {
  private static final int STAGING_BYTES = 4 << 20; // for the input, and again for the output

  private static final long PART_BYTES = 256 << 20; // divides the segments of host buffers

  private final RankGroup group;
  private final Gpu gpu;
  private final BackendDevice host;
  private final Reducer inner;
  private final Map<DataType, AbstractDeviceBuffer> staging = new EnumMap<>(DataType.class);
  private final Resources resources = new Resources();
  private final CollectiveCall onHost = new CollectiveCall();
  private final PlanCache<Plan> plans;
  private final PlanCache<DeviceBuffer> wholes; // copies of whole messages

  /** Pieces of one buffer, and their places in the staging memory. */
  private static final class Side {
    private final GpuStream stream;
    private final CUdeviceptr[][] device; // by piece and block
    private final Pointer[][] places; // by block, for a full piece and for the last one
    private final DeviceBuffer[] pieces; // all blocks of a full piece, and of the last one

    Side(GpuStream stream, CUdeviceptr[][] device, Pointer[][] places, DeviceBuffer[] pieces) {
      this.stream = stream;
      this.device = device;
      this.places = places;
      this.pieces = pieces;
    }
  }

  /** What one call copies; sides are null where there is no buffer. */
  private record Plan(Side in, Side out, long[] lengths) implements AutoCloseable {
    @Override
    public void close() {
      for (Side side : new Side[] {in, out}) {
        if (side != null) {
          Resources.closeAll(side.pieces);
        }
      }
    }
  }

  /**
   * @param inner runs collectives on buffers of the host device over the same group
   */
  StagedTransfers(RankGroup group, Gpu gpu, BackendDevice host, Reducer inner) {
    this.group = group;
    this.gpu = gpu;
    this.host = host;
    this.inner = inner;
    plans = new PlanCache<>(group);
    wholes = new PlanCache<>(group);
  }

  void run(CollectiveCall call) {
    gpu.makeCurrent();
    Plan plan = plans.get(call);
    if (plan == null) {
      plan = plan(call);
      plans.put(call, plan);
    }
    for (int piece = 0; piece < plan.lengths.length; piece++) {
      int kind = kind(plan, piece);
      copyDown(plan, piece);
      inner.run(
          onHost.set(
              call.kind(),
              plan.in == null ? null : plan.in.pieces[kind],
              plan.out == null ? null : plan.out.pieces[kind],
              call.op(),
              call.root()));
      copyUp(plan, piece);
    }
  }

  /** Exchanges messages that match, whole, through memory of the host. */
  void exchange(List<CollectiveCall> messages) {
    gpu.makeCurrent();
    List<CollectiveCall> copies = new ArrayList<>();
    for (CollectiveCall message : messages) {
      DeviceBuffer copy = wholes.get(message);
      if (copy == null) {
        copy = host.allocate(message.buffer().type(), message.buffer().count());
        wholes.put(message, copy);
      }
      if (message.sends()) {
        copy(message.buffer(), copy, true);
      }
      copies.add(
          message.sends()
              ? CollectiveCall.send(copy, message.peer())
              : CollectiveCall.receive(copy, message.peer()));
    }
    inner.exchange(copies);
    for (int i = 0; i < copies.size(); i++) {
      if (!messages.get(i).sends()) {
        copy(messages.get(i).buffer(), copies.get(i).buffer(), false);
      }
    }
  }

  /** Copies a whole buffer, in parts that lie in one segment of the host's memory. */
  private static void copy(DeviceBuffer device, DeviceBuffer host, boolean toHost) {
    long part = PART_BYTES / device.type().sizeInBytes();
    for (long first = 0; first < device.count(); first += part) {
      long count = Math.min(part, device.count() - first);
      CudaBuffer from = (CudaBuffer) device.slice(first, count);
      ByteBuffer memory = host.slice(first, count).hostMemory();
      if (toHost) {
        from.copyToUnintercepted(memory);
      } else {
        from.copyFromUnintercepted(memory);
      }
    }
  }

  /** 0 for a full piece, 1 for the last one. */
  private static int kind(Plan plan, int piece) {
    return piece == plan.lengths.length - 1 ? 1 : 0;
  }

  private void copyDown(Plan plan, int piece) {
    if (plan.in == null) {
      return;
    }
    CudaApi api = gpu.api();
    int kind = kind(plan, piece);
    for (int block = 0; block < plan.in.places.length; block++) {
      api.copyToHost(
          plan.in.places[block][kind],
          plan.in.device[piece][block],
          plan.lengths[piece],
          plan.in.stream.handle());
    }
    plan.in.stream.await();
  }

  private void copyUp(Plan plan, int piece) {
    if (plan.out == null) {
      return;
    }
    CudaApi api = gpu.api();
    int kind = kind(plan, piece);
    for (int block = 0; block < plan.out.places.length; block++) {
      api.copyToDevice(
          plan.out.device[piece][block],
          plan.out.places[block][kind],
          plan.lengths[piece],
          plan.out.stream.handle());
    }
    plan.out.stream.await(); // the next piece, or the next call, uses the staging memory
  }

  private Plan plan(CollectiveCall call) {
    CudaBuffer in = (CudaBuffer) call.in();
    CudaBuffer out = (CudaBuffer) call.out();
    int inBlocks = call.kind().inputBlocks(group.size());
    int outBlocks = call.kind().outputBlocks(group.size());
    DataType type = call.buffer().type();
    long count = call.blockCount(group.size());
    long most = Math.max(1, STAGING_BYTES / type.sizeInBytes() / Math.max(inBlocks, outBlocks));
    int pieces = Math.toIntExact((count - 1) / most + 1);
    long[] lengths = new long[pieces];
    for (int piece = 0; piece < pieces; piece++) {
      lengths[piece] = Math.min(most, count - piece * most) * type.sizeInBytes();
    }
    AbstractDeviceBuffer memory = staging(type);
    long half = memory.count() / 2;
    return new Plan(
        in == null ? null : side(in, inBlocks, count, most, memory.slice(0, half)),
        out == null ? null : side(out, outBlocks, count, most, memory.slice(half, half)),
        lengths);
  }

  private Side side(
      CudaBuffer buffer, int blocks, long count, long most, AbstractDeviceBuffer memory) {
    int size = buffer.type().sizeInBytes();
    int pieces = (int) ((count - 1) / most + 1);
    long[] elements = {most, count - (pieces - 1) * most};
    CUdeviceptr[][] device = new CUdeviceptr[pieces][blocks];
    Pointer[][] places = new Pointer[blocks][2];
    DeviceBuffer[] slices = new DeviceBuffer[2];
    ByteBuffer bytes = memory.nativeView(0, memory.count());
    for (int kind = 0; kind < 2; kind++) {
      slices[kind] = memory.slice(0, Math.min(memory.count(), blocks * elements[kind]));
    }
    for (int block = 0; block < blocks; block++) {
      for (int piece = 0; piece < pieces; piece++) {
        device[piece][block] =
            gpu.api().pointer(buffer.address() + (block * count + piece * most) * size);
      }
      for (int kind = 0; kind < 2; kind++) {
        int offset = Math.toIntExact(block * elements[kind] * size);
        places[block][kind] = gpu.api().pointer(bytes, Math.min(offset, bytes.capacity()));
      }
    }
    return new Side(DriverAccess.stream(buffer.stream()), device, places, slices);
  }

  private AbstractDeviceBuffer staging(DataType type) {
    AbstractDeviceBuffer memory = staging.get(type);
    if (memory == null) {
      long half = Math.max(STAGING_BYTES / type.sizeInBytes(), group.size());
      memory = resources.add(Unclosed.exempt(host.allocate(type, 2 * half)));
      ByteBuffer view = memory.nativeView(0, memory.count());
      gpu.api().pageLock(view);
      resources.add(() -> gpu.api().pageUnlock(view));
      staging.put(type, memory);
    }
    return memory;
  }

  /** The caller closes the inner reducer and the host device afterwards. */
  @Override
  public void close() {
    Resources.closeAll(gpu::makeCurrent, plans, wholes, resources);
  }
}

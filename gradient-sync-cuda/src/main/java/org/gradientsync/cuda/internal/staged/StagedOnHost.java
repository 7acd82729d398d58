package org.gradientsync.cuda.internal.staged;

import java.nio.ByteBuffer;
import java.util.EnumMap;
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
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Host staging for small buffers and for ranks on several nodes. Copies each chunk down to
 * page-locked memory, reduces it there over the ranks with a reducer for host memory, and copies it
 * up again. While the host reduces a chunk, the next ones are copied down and the last ones up.
 */
final class StagedOnHost implements AutoCloseable {
  private static final int CHUNK_BYTES = 4 << 20;
  private static final int SLOTS = 4;

  private final RankGroup group;
  private final Gpu gpu;
  private final BackendDevice host;
  private final Reducer inner;
  private final GpuStream down;
  private final GpuStream up;
  private final GpuEvent ready;
  private final GpuEvent finished;
  private final GpuEvent[] copiedDown = new GpuEvent[SLOTS];
  private final GpuEvent[] copiedUp = new GpuEvent[SLOTS];
  private final Map<DataType, AbstractDeviceBuffer> staging = new EnumMap<>(DataType.class);
  private final Resources resources = new Resources();
  private final CollectiveCall onHost = new CollectiveCall();
  private final PlanCache<Plan> plans;

  /**
   * A buffer's chunks.
   *
   * @param device each chunk on the GPU
   * @param host each slot on the host
   * @param full each slot as a buffer for a full chunk
   * @param last each slot as a buffer for the last chunk, which may be shorter
   */
  private record Plan(
      CUdeviceptr[] device, Pointer[] host, DeviceBuffer[] full, DeviceBuffer[] last)
      implements AutoCloseable {
    @Override
    public void close() {
      Resources.closeAll(full);
      Resources.closeAll(last);
    }
  }

  /**
   * @param inner reduces buffers of the host device over the same group
   */
  StagedOnHost(RankGroup group, Gpu gpu, BackendDevice host, Reducer inner) {
    this.group = group;
    this.gpu = gpu;
    this.host = host;
    this.inner = inner;
    plans = new PlanCache<>(group);
    try {
      down = resources.add(GpuStream.create(gpu));
      up = resources.add(GpuStream.create(gpu));
      ready = resources.add(GpuEvent.create(gpu, false));
      finished = resources.add(GpuEvent.create(gpu, false));
      for (int slot = 0; slot < SLOTS; slot++) {
        copiedDown[slot] = resources.add(GpuEvent.create(gpu, false));
        copiedUp[slot] = resources.add(GpuEvent.create(gpu, false));
      }
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /** Runs an all-reduce or a broadcast. */
  void run(CollectiveCall call) {
    CudaBuffer buffer = (CudaBuffer) call.buffer();
    gpu.makeCurrent();
    Plan plan = plan(call, buffer);
    CudaApi api = gpu.api();
    int size = buffer.type().sizeInBytes();
    int chunk = CHUNK_BYTES / size;
    long chunks = (buffer.count() + chunk - 1) / chunk;
    GpuStream stream = DriverAccess.stream(buffer.stream());
    stream.record(ready);
    down.waitFor(ready);
    for (long next = 0; next < chunks + SLOTS - 1; next++) {
      if (next < chunks) {
        int slot = (int) (next % SLOTS);
        down.waitFor(copiedUp[slot]);
        api.copyToHost(
            plan.host[slot],
            plan.device[(int) next],
            length(buffer, next, chunk) * size,
            down.handle());
        down.record(copiedDown[slot]);
      }
      long current = next - (SLOTS - 1);
      if (current >= 0) {
        int slot = (int) (current % SLOTS);
        long length = length(buffer, current, chunk);
        DeviceBuffer piece = length == chunk ? plan.full[slot] : plan.last[slot];
        copiedDown[slot].await();
        inner.run(onHost.set(call.kind(), piece, piece, call.op(), call.root()));
        api.copyToDevice(plan.device[(int) current], plan.host[slot], length * size, up.handle());
        up.record(copiedUp[slot]);
      }
    }
    up.record(finished);
    stream.waitFor(finished);
  }

  private static long length(CudaBuffer buffer, long index, int chunk) {
    return Math.min(chunk, buffer.count() - index * chunk);
  }

  private Plan plan(CollectiveCall call, CudaBuffer buffer) {
    Plan plan = plans.get(call);
    if (plan == null) {
      int chunk = CHUNK_BYTES / buffer.type().sizeInBytes();
      AbstractDeviceBuffer memory = staging(buffer.type(), chunk);
      plan =
          new Plan(
              new CUdeviceptr[(int) ((buffer.count() + chunk - 1) / chunk)],
              new Pointer[SLOTS],
              new DeviceBuffer[SLOTS],
              new DeviceBuffer[SLOTS]);
      for (int slot = 0; slot < SLOTS; slot++) {
        plan.host[slot] = gpu.api().pointer(memory.nativeView((long) slot * chunk, chunk), 0);
        plan.full[slot] = memory.slice((long) slot * chunk, chunk);
        plan.last[slot] = memory.slice((long) slot * chunk, buffer.count() % chunk);
      }
      for (int i = 0; i < plan.device.length; i++) {
        plan.device[i] = gpu.api().pointer(buffer.address() + (long) i * CHUNK_BYTES);
      }
      plans.put(call, plan);
    }
    return plan;
  }

  private AbstractDeviceBuffer staging(DataType type, int chunk) {
    AbstractDeviceBuffer memory = staging.get(type);
    if (memory == null) {
      memory = resources.add(Unclosed.exempt(host.allocate(type, (long) SLOTS * chunk)));
      ByteBuffer view = memory.nativeView(0, memory.count());
      gpu.api().pageLock(view);
      resources.add(() -> gpu.api().pageUnlock(view));
      staging.put(type, memory);
    }
    return memory;
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(gpu::makeCurrent, down::await, up::await, plans, resources, inner, host);
    }
  }
}

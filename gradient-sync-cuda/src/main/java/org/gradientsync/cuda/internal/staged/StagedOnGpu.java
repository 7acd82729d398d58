package org.gradientsync.cuda.internal.staged;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.Counter;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.cuda.internal.driver.ReduceKernel;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/**
 * Host staging in which the GPUs add. Each rank owns a shard of the buffer and handles it in
 * pieces. A piece takes three steps, which overlap with the steps of the pieces before and after
 * it:
 *
 * <ol>
 *   <li>down: each rank copies its elements of the other ranks' shards to its own staging memory;
 *   <li>reduce: each owner copies the other ranks' contributions up from their staging memory,
 *       reduces them in rank order on the GPU, and copies the result down to its own staging
 *       memory;
 *   <li>up: each rank copies the results up from the owners' staging memory.
 * </ol>
 *
 * <p>So each byte crosses a GPU's link to the host once in each direction, and the CPU moves none.
 * The ranks show each other their progress in counters in the same shared memory: one for each
 * step, which counts pieces and only grows.
 */
final class StagedOnGpu implements AutoCloseable {
  private static final int SLOTS = 4;
  private static final int LARGEST_PIECE = 1 << 20;
  private static final int SMALLEST_PIECE = 64 << 10;
  private static final int PIECES = 6;

  private static final int DOWN = 0;
  private static final int RESULT = 1;
  private static final int CONSUMED = 2;
  private static final int COUNTERS = 3;
  private static final int HEADER = 4096;

  private final RankGroup group;
  private final Gpu gpu;
  private final ReduceKernel kernel;
  private final Resources resources = new Resources();
  private final int rank;
  private final int size;
  private final GpuStream down;
  private final GpuStream up;
  private final GpuStream work;
  private final GpuEvent ready;
  private final GpuEvent finished;
  private final GpuEvent[] copiedDown = new GpuEvent[SLOTS];
  private final GpuEvent[] gathered = new GpuEvent[SLOTS];
  private final GpuEvent[] reduced = new GpuEvent[SLOTS];
  private final GpuEvent[] resultDown = new GpuEvent[SLOTS];
  private final GpuEvent[] copiedUp = new GpuEvent[SLOTS];
  private final Pointer[][][]
      staging; // by owner of the memory, slot, and rank that the piece is for
  private final Counter[][] counters;
  private final PlanCache<Plan> plans;
  private long scratch; // on the GPU, for the other ranks' contributions; allocated on first use
  private long pieces; // in all calls before this one

  /** The size of the shared memory of each rank. */
  static int bytes(int size) {
    return HEADER + SLOTS * size * LARGEST_PIECE;
  }

  /**
   * A buffer's pieces: where they are on the GPU, and which contributions are reduced into them.
   */
  private static final class Plan implements AutoCloseable {
    private final int count;
    private final CUdeviceptr[][] places;
    private final long[][] lengths;
    private final long[][] contributions;
    private final CUdeviceptr[][] incoming;

    Plan(int count, int size) {
      this.count = count;
      this.places = new CUdeviceptr[count][size];
      this.lengths = new long[count][size];
      this.contributions = new long[count][];
      this.incoming = new CUdeviceptr[count][size];
    }

    @Override
    public void close() {} // it owns nothing
  }

  StagedOnGpu(RankGroup group, Gpu gpu, ByteBuffer[] node) {
    this.group = group;
    this.gpu = gpu;
    rank = group.rank();
    size = group.size();
    staging = new Pointer[size][SLOTS][size];
    counters = new Counter[size][COUNTERS];
    plans = new PlanCache<>(group);
    try {
      kernel =
          gpu.kernels().reduce(); // load it now: if it fails, another reducer can still be chosen
      down = resources.add(GpuStream.create(gpu));
      up = resources.add(GpuStream.create(gpu));
      work = resources.add(GpuStream.create(gpu));
      ready = resources.add(GpuEvent.create(gpu, false));
      finished = resources.add(GpuEvent.create(gpu, false));
      for (int slot = 0; slot < SLOTS; slot++) {
        copiedDown[slot] = resources.add(GpuEvent.create(gpu, false));
        gathered[slot] = resources.add(GpuEvent.create(gpu, false));
        reduced[slot] = resources.add(GpuEvent.create(gpu, false));
        resultDown[slot] = resources.add(GpuEvent.create(gpu, false));
        copiedUp[slot] = resources.add(GpuEvent.create(gpu, false));
      }
      lockMemory(node);
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  private void lockMemory(ByteBuffer[] node) {
    for (int owner = 0; owner < size; owner++) {
      ByteBuffer memory = node[owner];
      gpu.api().pageLock(memory);
      resources.add(() -> gpu.api().pageUnlock(memory));
      for (int slot = 0; slot < SLOTS; slot++) {
        for (int target = 0; target < size; target++) {
          staging[owner][slot][target] =
              gpu.api().pointer(memory, HEADER + (slot * size + target) * LARGEST_PIECE);
        }
      }
      for (int counter = 0; counter < COUNTERS; counter++) {
        counters[owner][counter] = new Counter(memory, counter * Counter.LINE);
      }
    }
  }

  /** Runs an all-reduce. */
  void run(CollectiveCall call) {
    CudaBuffer buffer = (CudaBuffer) call.buffer();
    ReduceOp op = call.op();
    gpu.makeCurrent();
    Plan plan = plan(call);
    GpuStream stream = DriverAccess.stream(buffer.stream());
    stream.record(ready);
    down.waitFor(ready);
    up.waitFor(ready);
    work.waitFor(ready);
    for (int step = 0; step < plan.count + 3; step++) {
      if (step < plan.count) {
        copyDown(plan, step);
      }
      if (step >= 1 && step - 1 < plan.count) {
        reducePiece(plan, step - 1, buffer.type(), op);
      }
      if (step >= 2 && step - 2 < plan.count) {
        copyUp(plan, step - 2);
      }
      if (step >= 3) {
        int piece = step - 3;
        copiedUp[slot(piece)].await();
        set(CONSUMED, pieces + piece + 1);
      }
    }
    pieces += plan.count;
    up.record(finished); // the last step's copies come after everything else
    stream.waitFor(finished);
    down.record(finished);
    stream.waitFor(finished);
  }

  private void copyDown(Plan plan, int piece) {
    int slot = slot(piece);
    // All ranks must have read the slot's last piece before this one overwrites it.
    awaitAll(CONSUMED, pieces + piece + 1 - SLOTS);
    for (int target = 0; target < size; target++) {
      if (target != rank && plan.lengths[piece][target] > 0) {
        gpu.api()
            .copyToHost(
                staging[rank][slot][target],
                plan.places[piece][target],
                plan.lengths[piece][target],
                down.handle());
      }
    }
    down.record(copiedDown[slot]);
  }

  private void reducePiece(Plan plan, int piece, DataType type, ReduceOp op) {
    int slot = slot(piece);
    copiedDown[slot].await();
    set(DOWN, pieces + piece + 1);
    awaitAll(DOWN, pieces + piece + 1);
    long[] sources = plan.contributions[piece];
    if (sources != null) {
      long bytes = plan.lengths[piece][rank];
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          gpu.api()
              .copyToDevice(
                  plan.incoming[piece][peer], staging[peer][slot][rank], bytes, up.handle());
        }
      }
      up.record(gathered[slot]);
      work.waitFor(gathered[slot]);
      enqueueReduction(sources, bytes / type.sizeInBytes(), type, op);
      work.record(reduced[slot]);
      down.waitFor(reduced[slot]);
      gpu.api()
          .copyToHost(staging[rank][slot][rank], plan.places[piece][rank], bytes, down.handle());
    }
    down.record(resultDown[slot]);
  }

  private void enqueueReduction(long[] sources, long count, DataType type, ReduceOp op) {
    ReduceKernel.requireRanks(size);
    synchronized (kernel) {
      for (int peer = 0; peer < size; peer++) {
        kernel.source(peer, sources[peer]);
      }
      kernel.reduce(size, sources[rank], count, type, op, work.handle());
    }
  }

  private void copyUp(Plan plan, int piece) {
    int slot = slot(piece);
    resultDown[slot].await();
    set(RESULT, pieces + piece + 1);
    awaitAll(RESULT, pieces + piece + 1);
    for (int owner = 0; owner < size; owner++) {
      if (owner != rank && plan.lengths[piece][owner] > 0) {
        gpu.api()
            .copyToDevice(
                plan.places[piece][owner],
                staging[owner][slot][owner],
                plan.lengths[piece][owner],
                up.handle());
      }
    }
    up.record(copiedUp[slot]);
  }

  private int slot(int piece) {
    return (int) ((pieces + piece) % SLOTS);
  }

  private void set(int counter, long value) {
    counters[rank][counter].set(value);
  }

  private void awaitAll(int counter, long value) {
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        group.await(counters[peer][counter].expect(value), peer);
      }
    }
  }

  private Plan plan(CollectiveCall call) {
    Plan plan = plans.get(call);
    if (plan == null) {
      plan = build((CudaBuffer) call.buffer());
      plans.put(call, plan);
    }
    return plan;
  }

  private Plan build(CudaBuffer buffer) {
    int elementSize = buffer.type().sizeInBytes();
    long shard = (buffer.count() + size - 1) / size;
    long most = LARGEST_PIECE / elementSize;
    long piece =
        Math.min(most, Math.max(SMALLEST_PIECE / elementSize, (shard + PIECES - 1) / PIECES));
    int count = (int) ((shard + piece - 1) / piece);
    Plan plan = new Plan(count, size);
    if (scratch == 0) {
      scratch = work.allocateZeroed((long) SLOTS * size * LARGEST_PIECE);
      resources.add(() -> gpu.memory().free(scratch));
    }
    for (int i = 0; i < count; i++) {
      for (int owner = 0; owner < size; owner++) {
        long end = Math.min(buffer.count(), (owner + 1) * shard);
        long first = Math.min(end, owner * shard + i * piece);
        long length = Math.min(piece, end - first);
        plan.places[i][owner] = gpu.api().pointer(buffer.address() + first * elementSize);
        plan.lengths[i][owner] = length * elementSize;
        if (owner == rank && length > 0) {
          plan.contributions[i] = new long[size];
          for (int peer = 0; peer < size; peer++) {
            long place =
                peer == rank
                    ? buffer.address() + first * elementSize
                    : scratch + (long) (i % SLOTS * size + peer) * LARGEST_PIECE;
            plan.contributions[i][peer] = place;
            plan.incoming[i][peer] = gpu.api().pointer(place);
          }
        }
      }
    }
    return plan;
  }

  @Override
  public void close() {
    Resources.closeAll(gpu::makeCurrent, down::await, up::await, work::await, plans, resources);
  }
}

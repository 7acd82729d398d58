package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.SoakChecks.LARGE;
import static org.gradientsync.test.contract.SoakChecks.TYPES;
import static org.gradientsync.test.contract.SoakChecks.check;

import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/**
 * One rank of a soak test: random calls on several syncs, each checked. All ranks draw the same
 * random numbers, so they make the same calls.
 */
final class Soak implements AutoCloseable {
  /** Enough that one leaked descriptor or mapping per sync is more than noise. */
  private static final int FEWEST_SYNCS = 80;

  private static final int WARM_UP_SYNCS = 40;
  private static final int OPEN_AT_ONCE = 3;
  private static final int SHORT_LIVED = 3;
  private static final int STEPS_AT_A_TIME = 16;

  private final long seed;
  private final GradientSync base;
  private final int ranks;
  private final int rank;
  private final SplittableRandom shared;
  // for the order in which gradients become ready, which may differ by rank
  private final Random own;
  private final SoakCollectives collectives;
  private final SoakCommunicator messages;
  private final SoakBuckets buckets;
  private final List<GradientSync> open = new ArrayList<>();
  private int opened;
  private long steps;

  Soak(GradientSync base) {
    this.base = base;
    ranks = base.size();
    rank = base.rank();
    seed = Long.getLong("soak.seed", agree(System.nanoTime()));
    shared = new SplittableRandom(seed);
    own = new Random(seed + rank);
    collectives = new SoakCollectives(base, shared, own);
    messages = new SoakCommunicator(base, shared);
    buckets = new SoakBuckets(base, shared, own);
    if (rank == 0) {
      System.out.println(this);
    }
  }

  /** Makes every kind of call several times, to fill all caches, some of which are for one type. */
  void warmUp() {
    for (DataType type : TYPES) {
      try (DeviceBuffer block = base.allocate(type, LARGE);
          DeviceBuffer all = base.allocate(type, (long) LARGE * ranks);
          DeviceBuffer exchanged = base.allocate(type, (long) LARGE * ranks)) {
        base.allReduce(block, ReduceOp.SUM);
        base.allGather(block, all);
        base.reduceScatter(all, block, ReduceOp.SUM);
        base.allToAll(all, exchanged);
      }
    }
    collectives.unequalBlocks(base);
    collectives.unequalMessages(base);
    collectives.background(base);
    buckets.warmUp(base);
    run(Duration.ZERO, WARM_UP_SYNCS);
  }

  /** Makes random calls for some time, and returns how many syncs it opened. */
  int run(Duration time) {
    return run(time, FEWEST_SYNCS);
  }

  private int run(Duration time, int fewestSyncs) {
    int before = opened;
    long start = System.nanoTime();
    boolean more = true;
    while (more) {
      for (int i = 0; i < STEPS_AT_A_TIME; i++) {
        step();
      }
      boolean late = System.nanoTime() - start >= time.toNanos();
      more = agree(late && opened - before >= fewestSyncs ? 1 : 0) == 0; // by rank 0's clock
    }
    return opened - before;
  }

  /** Closes all syncs but the first. */
  void settle() {
    open.forEach(GradientSync::close);
    open.clear();
    base.barrier();
  }

  @Override
  public void close() {
    open.forEach(GradientSync::close);
  }

  @Override
  public String toString() {
    return "soak: -Dsoak.seed=%s, reducer=%s, rank=%s of %s, steps=%s"
        .formatted(seed, base.reducer(), rank, ranks, steps);
  }

  private long agree(long value) {
    LongBuffer one = LongBuffer.wrap(new long[] {value});
    base.communicator().broadcast(one, 0);
    return one.get(0);
  }

  private void step() {
    steps++;
    int choice = shared.nextInt(100);
    try {
      if (choice < 24) {
        collectives.reduce(any(), shared);
      } else if (choice < 28) {
        collectives.unequalBlocks(any());
        collectives.unequalMessages(any());
      } else if (choice < 31) {
        collectives.background(any());
      } else if (choice < 38) {
        collectives.broadcast(any(), shared);
      } else if (choice < 50) {
        SoakCommunicator.onHost(any().communicator(), ranks, shared);
      } else if (choice < 54) {
        messages.split(any().communicator());
      } else if (choice < 63) {
        stepsOfBuckets();
      } else if (choice < 66) {
        buckets.unevenSteps(any());
      } else if (choice < 69) {
        buckets.compressed(any());
      } else if (choice < 74) {
        twoThreads();
      } else if (choice < 77) {
        if (open.isEmpty()) {
          open();
        }
        // not the first sync: what it keeps for arrays of other lengths would count as a leak
        collectives.sparseRows(open.get(shared.nextInt(open.size())));
      } else if (choice < 94) {
        openOrClose();
      } else if (choice < 99) {
        collectives.buffers(any());
      } else {
        System.gc();
      }
    } catch (Exception | AssertionError e) {
      throw new AssertionError(this + ", choice=" + choice + ": " + e, e);
    }
  }

  /** All ranks may be asked to stop, on a sync that is not used again. */
  private void stepsOfBuckets() {
    boolean sharded = shared.nextBoolean();
    int stopping = shared.nextInt(4) == 0 ? shared.nextInt(ranks) : SoakBuckets.NOBODY;
    if (stopping != SoakBuckets.NOBODY) {
      open();
    }
    GradientSync sync = stopping == SoakBuckets.NOBODY ? any() : open.remove(open.size() - 1);
    if (sharded) {
      buckets.shards(sync, stopping);
    } else {
      buckets.steps(sync, stopping);
    }
    if (stopping != SoakBuckets.NOBODY) {
      sync.close();
    }
  }

  private GradientSync any() {
    int index = shared.nextInt(open.size() + 1);
    return index == 0 ? base : open.get(index - 1);
  }

  /** Calls two syncs at the same time, each on its own thread. */
  private void twoThreads() throws InterruptedException {
    while (open.size() < 2) {
      open();
    }
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      GradientSync sync = open.get(i);
      SplittableRandom random = shared.split();
      threads[i] =
          new Thread(
              () -> {
                for (int call = 0; call < 4; call++) {
                  collectives.reduce(sync, random);
                  SoakCommunicator.onHost(sync.communicator(), ranks, random);
                }
              },
              "soak-" + i);
      threads[i].setUncaughtExceptionHandler((thread, e) -> failures.add(e));
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (!failures.isEmpty()) {
      throw new AssertionError("on one of two threads: " + failures.get(0), failures.get(0));
    }
  }

  private void open() {
    open.add(
        GradientSync.builder()
            .device(base.device().kind())
            .reducer(base.reducer())
            .timeout(Duration.ofSeconds(60))
            .create());
    opened++;
  }

  private void openOrClose() {
    if (open.size() == OPEN_AT_ONCE || !open.isEmpty() && shared.nextBoolean()) {
      open.remove(shared.nextInt(open.size())).close();
    } else {
      open();
      collectives.reduce(open.get(open.size() - 1), shared);
    }
    for (int i = 0; i < SHORT_LIVED; i++) {
      open();
      GradientSync sync = open.remove(open.size() - 1);
      try (DeviceBuffer buffer = sync.allocate(DataType.INT32, 9)) {
        buffer.copyFrom(Numbers.of(DataType.INT32, rank, i, 9));
        sync.allReduce(buffer, ReduceOp.SUM);
        check(Numbers.reduced(DataType.INT32, ReduceOp.SUM, ranks, i, 9), buffer, "a new sync's");
      }
      sync.close();
    }
  }
}

package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * What a rank keeps for each other rank of a large job, in heap and direct memory together: the
 * difference between two sizes, so without what does not depend on the size.
 */
class KeptForEachRankTest {
  private static final int RANKS = 4096;
  private static final long MOST = 1024; // bytes
  private static final long NOISE = 10_000;

  /** Until all is measured, so that nothing of it is freed meanwhile. */
  private final List<AutoCloseable> open = new ArrayList<>();

  @AfterEach
  void close() {
    Resources.closeAll(open);
  }

  /** A rank alone on its node, which leads it and so keeps most. */
  @Test
  void aGroupKeepsLessThanOneKilobyteForEachRank() throws InterruptedException {
    long[] fewer = kept(RANKS);
    long[] more = kept(4 * RANKS);
    long first = (more[0] - fewer[0]) / (3 * RANKS);
    long rendezvous = (more[1] - fewer[1]) / (3 * RANKS);
    assertTrue(first < MOST, "bytes for a rank in the job's group: " + first);
    assertTrue(rendezvous < MOST, "bytes for a rank in the rendezvous of nodes: " + rendezvous);
  }

  /** What the group of all ranks keeps, and the rendezvous that a sync's group has instead. */
  private long[] kept(int ranks) throws InterruptedException {
    long before = used();
    ProcessGroup group = ProcessGroup.world(new Silent(ranks));
    long first = used();
    MessageRendezvous rendezvous =
        new MessageRendezvous(
            group.messages(),
            new NodeLayout(group.ranks()),
            NodeMemory.ofOne(MessageRendezvous.bytes(0, 1, ranks, true, true), new SharedFiles()),
            group.parts().arrivals().notices(),
            true,
            true);
    long second = used();
    open.add(rendezvous);
    open.add(group);
    return new long[] {first - before, second - first};
  }

  /** The used memory, once nothing more is freed of what other tests have left. */
  private static long used() throws InterruptedException {
    long last = Long.MAX_VALUE;
    long used = now();
    while (last - used > NOISE) {
      last = used;
      Thread.sleep(20); // direct memory is freed by another thread
      used = now();
    }
    return used;
  }

  private static long now() {
    System.gc();
    long direct =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .mapToLong(BufferPoolMXBean::getMemoryUsed)
            .sum();
    return direct + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  /** Rank 0 of many, none of which ever sends anything. */
  private record Silent(int size) implements Transport {
    @Override
    public String name() {
      return "silent";
    }

    @Override
    public int rank() {
      return 0;
    }

    @Override
    public int nodeOf(int rank) {
      return rank;
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      return new Never();
    }

    @Override
    public Message receiver(ByteBuffer memory, int peer, int tag) {
      return new Never();
    }

    @Override
    public void close() {}
  }

  private static final class Never implements Message {
    @Override
    public void start() {}

    @Override
    public boolean test() {
      return false;
    }

    @Override
    public void close() {}
  }
}

package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.RendezvousChoice;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.local.LocalGroup;
import org.gradientsync.core.local.LocalTransport;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * 256 threads that take each other for ranks of 32 nodes: errors name the rank that causes them, in
 * texts that can be read.
 */
@Timeout(120)
class ManyRanksTest {
  private static final Settings NONE = new Settings(Map.of());
  private static final int RANKS = 256;
  private static final int RANKS_OF_NODE = 8;
  private static final int ODD = 77;
  private static final int MOST_TEXT = 1500;

  private static final int FEWER = 64;

  private interface Body {
    void run(ProcessGroup group, Nodes nodes) throws Exception;
  }

  private static void requireShort(String text) {
    assertTrue(text.length() < MOST_TEXT, text);
  }

  /** In one test, because 256 ranks take seconds to start. */
  @Test
  void theRankThatCausesAnErrorIsNamed() throws Exception {
    run(
        RANKS,
        NONE.timeouts(),
        (group, nodes) -> {
          try (HostDevice device = new HostDevice()) {
            requireMismatch(group, device);
            requireFewMessages(group, nodes);
            requireRing(group);
            if (group.rank() != ODD) {
              requireLost(group);
            } // it leaves the group, while the others need it
          }
        });
  }

  private static void run(int size, Timeouts timeouts, Body body) throws Exception {
    LocalGroup threads = new LocalGroup(size);
    ExecutorService ranks = Executors.newCachedThreadPool();
    List<Future<?>> results = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      Nodes nodes = new Nodes(new LocalTransport(threads, rank));
      results.add(
          ranks.submit(
              () -> {
                run(nodes, timeouts, body);
                return null;
              }));
    }
    for (Future<?> result : results) {
      result.get();
    }
    ranks.shutdown();
  }

  private static void run(Nodes nodes, Timeouts timeouts, Body body) throws Exception {
    try (ProcessGroup world = ProcessGroup.world(nodes);
        ProcessGroup group = world.split(0, world.rank(), timeouts)) {
      RendezvousChoice.choose(group, NONE, true);
      body.run(group, nodes);
    }
  }

  /** From the start to the end of a job, as messages to a rank may need a connection. */
  @Test
  void aRankSendsToFewOthers() throws Exception {
    Map<Integer, Nodes> all = new ConcurrentHashMap<>();
    run(
        FEWER,
        NONE.timeouts(),
        (group, nodes) -> {
          all.put(group.rank(), nodes);
          new GroupCommunicator(group).barrier();
        });
    assertEquals(FEWER, all.size());
    int neighbours = new RankMap(null, new int[FEWER], 0).neighbours().length;
    assertEquals(11, neighbours);
    all.forEach(
        (rank, nodes) -> {
          int others = rank % RANKS_OF_NODE == 0 ? 3 : 0; // the leaders that it sends its calls to
          int most = neighbours + RANKS_OF_NODE - 1 + others;
          assertTrue(nodes.receivers.size() <= most, rank + " sends to " + nodes.receivers);
        });
  }

  /** Most neighbours of a rank that waits are missing, so they pass nothing on. */
  @Test
  void ranksThatWaitKnowOfEachOtherWhoeverIsMissing() throws Exception {
    Set<Integer> present = Set.of(0, 21, 22, 43);
    CountDownLatch over = new CountDownLatch(present.size());
    Set<String> texts = ConcurrentHashMap.newKeySet();
    run(
        FEWER,
        new Timeouts(Duration.ofSeconds(5), Duration.ofSeconds(5), Optional.empty()),
        (group, nodes) -> {
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          if (present.contains(group.rank())) {
            texts.add(assertThrows(RankLostException.class, communicator::barrier).getMessage());
            over.countDown();
          }
          assertTrue(over.await(60, TimeUnit.SECONDS));
        });
    texts.forEach(
        text ->
            assertTrue(
                text.contains("timed out: ranks 1-20, 23-42, 44-63 did not join in time"), text));
  }

  private static void requireMismatch(ProcessGroup group, HostDevice device) {
    try (MessageReducer reducer = new MessageReducer("mpi", group, device);
        DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 50).named("w")) {
      float[] before = new float[50];
      Arrays.fill(before, group.rank());
      buffer.copyFrom(before);
      DeviceBuffer part = buffer.slice(0, group.rank() == ODD ? 3 : 40);
      String text =
          assertThrows(
                  MismatchedCallException.class,
                  () -> reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM)))
              .getMessage();
      requireShort(text);
      assertTrue(text.contains("\n  rank " + ODD + ": allReduce(FLOAT32[3] \"w\", SUM)"), text);
      assertTrue(text.contains("\n  ranks 0-76, 78-255: allReduce(FLOAT32[40] \"w\", SUM)"), text);
      float[] after = new float[50];
      buffer.copyTo(after);
      assertArrayEquals(before, after);
      reducer.run(CollectiveCall.allReduce(buffer.slice(0, 40), ReduceOp.MAX));
      buffer.copyTo(after);
      assertEquals(RANKS - 1, after[0]);
    }
  }

  private static void requireFewMessages(ProcessGroup group, Nodes nodes) {
    GroupCommunicator communicator = new GroupCommunicator(group);
    communicator.barrier();
    int before = nodes.sent.get();
    int calls = 3;
    for (int call = 0; call < calls; call++) {
      communicator.barrier();
    }
    int expected = group.rank() % RANKS_OF_NODE == 0 ? calls * 5 : 0; // log2 of the nodes
    assertEquals(expected, nodes.sent.get() - before);
  }

  /** Each rank sends to the next one, which sends, too. */
  private static void requireRing(ProcessGroup group) {
    try (Communicator ring = new GroupCommunicator(group.split(0, group.rank(), NONE.timeouts()))) {
      int next = (group.rank() + 1) % RANKS;
      String text =
          assertThrows(
                  MismatchedCallException.class, () -> ring.send(IntBuffer.allocate(1), next, 5))
              .getMessage();
      assertTrue(text.startsWith("the ranks wait for each other, rank=" + group.rank()), text);
      assertTrue(text.contains(", tag=5), waits for rank "), text);
      assertTrue(text.endsWith("\n  and " + (RANKS - 15) + " more ranks of this cycle"), text);
      requireShort(text);
    }
  }

  private static void requireLost(ProcessGroup group) {
    String text =
        assertThrows(RankLostException.class, () -> new GroupCommunicator(group).barrier())
            .getMessage();
    assertTrue(text.contains("rank " + ODD + " has left: "), text);
    requireShort(text);
  }

  /** Counts the messages with calls, and to which ranks any are sent. */
  private static final class Nodes extends OtherWorld {
    private final AtomicInteger sent = new AtomicInteger();
    private final Set<Integer> receivers = ConcurrentHashMap.newKeySet();

    Nodes(Transport inner) {
      super(inner, rank -> rank / RANKS_OF_NODE);
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      int channel = tag % (1 << Channel.BITS);
      if (channel != Channel.ARRIVALS) { // only if a call is late
        receivers.add(peer);
      }
      return channel != Channel.CALLS ? message : beforeStarts(message, sent::incrementAndGet);
    }
  }
}

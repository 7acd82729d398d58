package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.sync.SyncBuilder;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Ranks whose messages are only slow are no deadlock, and no rank is flooded with probes;
 * DeadlockContract of gradient-sync-test has the real deadlocks.
 */
@Timeout(60)
class DeadlockDetectorTest {
  private static final long SLOW_NANOS = 900_000_000; // several times a long wait
  private static final int CHANNELS = 1 << Channel.BITS;

  private volatile boolean slow; // from here until a while after the first probe
  private final AtomicLong firstProbe = new AtomicLong(); // or 0
  private final AtomicInteger probes = new AtomicInteger();

  private interface Calls {
    void make(Communicator c) throws Exception;
  }

  private void run(int ranks, Calls calls) {
    LocalRanks.run(
        ranks,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new SlowMessages());
              GradientSync sync =
                  new SyncBuilder().ranks(world).set("dev.late", "PT0.4S").create()) {
            sync.barrier();
            calls.make(sync.communicator());
          }
        });
  }

  /** A probe holds 15 of these waits. */
  @Test
  void aLongCycleOverTwoCommunicatorsIsFound() {
    int ranks = 24;
    run(
        ranks,
        c -> {
          try (Communicator second = c.split(0, c.rank())) {
            Communicator own = c.rank() % 2 == 0 ? c : second;
            int next = (c.rank() + 1) % ranks;
            String text =
                assertThrows(
                        MismatchedCallException.class,
                        () -> own.send(IntBuffer.allocate(1), next, 5))
                    .getMessage();
            assertTrue(
                text.contains("\n  and " + (ranks - 15) + " more ranks of this cycle"), text);
          }
        });
  }

  /** The message that each rank waits for has been sent and is in flight. */
  @ParameterizedTest
  @ValueSource(strings = {"barrier", "exchange", "to each other"})
  void slowMessagesAreNoDeadlock(String call) {
    run(
        2,
        c -> {
          slow = true;
          int peer = 1 - c.rank();
          IntBuffer in = IntBuffer.allocate(1);
          IntBuffer out = IntBuffer.wrap(new int[] {c.rank() + 7});
          switch (call) {
            case "barrier" -> c.barrier();
            case "exchange" -> c.sendReceive(out, peer, in, peer, 1);
            default -> {
              if (c.rank() == 0) {
                c.send(out, 1, 1);
                c.receive(in, 1, 1);
              } else {
                c.receive(in, 0, 1);
                c.send(out, 0, 1);
              }
            }
          }
          if (!call.equals("barrier")) {
            assertEquals(peer + 7, in.get(0));
          }
        });
  }

  @Test
  void aRankThatNeverWaitsIsNotFlooded() {
    int rounds = 4;
    AtomicInteger before = new AtomicInteger();
    run(
        2,
        c -> {
          before.compareAndSet(0, probes.get());
          for (int round = 0; round < rounds; round++) {
            if (c.rank() == 0) {
              Thread.sleep(500);
            }
            c.barrier();
          }
        });
    assertTrue(probes.get() - before.get() <= 1, () -> before + " and then " + probes);
  }

  /** Ranks before the circle wait for it, and ask first who is in it. */
  @Test
  void aLongCircleIsFound() {
    int before = 10;
    int circle = 20; // more ranks than a probe has room for
    LocalRanks.run(
        before + circle,
        own -> {
          // Each on a node of its own, so that they soon wait for long.
          try (ProcessGroup world = ProcessGroup.world(new OtherWorld(rank -> rank));
              GradientSync sync = new SyncBuilder().ranks(world).create()) {
            int next = sync.rank() + 1 == sync.size() ? before : sync.rank() + 1;
            String text =
                assertThrows(
                        MismatchedCallException.class,
                        () -> sync.communicator().receive(IntBuffer.allocate(1), next, 3))
                    .getMessage();
            assertTrue(text.startsWith("the ranks wait for each other, rank=" + own.rank()), text);
            Matcher more =
                Pattern.compile("\n  and (\\d+) more ranks of this cycle$").matcher(text);
            assertTrue(more.find(), text);
            long shown = text.lines().count() - 2; // without the first and the last line
            assertEquals(circle, shown + Integer.parseInt(more.group(1)), text);
            for (int rank = 0; rank < before; rank++) {
              assertFalse(text.contains("\n  rank " + rank + ":"), text);
            }
          }
        });
  }

  private boolean isSlow() {
    long first = firstProbe.get();
    return slow && (first == 0 || System.nanoTime() - first < SLOW_NANOS);
  }

  /** A transport that delays calls, but not probes. */
  private final class SlowMessages extends OtherWorld {
    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      if (tag == Channel.PROBE && Probe.decode(memory, size()).kind == Probe.Kind.ASK) {
        probes.incrementAndGet();
        firstProbe.compareAndSet(0, System.nanoTime());
      }
      return super.sender(memory, peer, tag);
    }

    @Override
    public Message receiver(ByteBuffer memory, int peer, int tag) {
      Message message = super.receiver(memory, peer, tag);
      return tag < CHANNELS ? message : new Slow(message);
    }
  }

  private final class Slow extends OtherWorld.OtherMessage {
    Slow(Message message) {
      super(message);
    }

    @Override
    public boolean test() {
      return !isSlow() && super.test();
    }
  }
}

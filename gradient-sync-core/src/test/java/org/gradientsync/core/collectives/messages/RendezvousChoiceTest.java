package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.shared.SharedMemoryReducer;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Rendezvous in shared memory, with gradients by messages. */
class RendezvousChoiceTest {
  private static final int RANKS = 3;
  private static final int CALLS = 10;
  private static final Settings NONE = new Settings(Map.of());
  private static final Settings MESSAGES = new Settings(Map.of("dev.rendezvous", "messages"));

  private final AtomicInteger callMessages = new AtomicInteger();

  private final CountDownLatch memoryIsGone = new CountDownLatch(1);

  private interface Calls {
    void make(ProcessGroup group, GradientSync own) throws Exception;
  }

  private void run(Calls calls) {
    LocalRanks.run(
        RANKS,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new CountedMeetings());
              ProcessGroup group = world.split(0, world.rank(), NONE.timeouts())) {
            calls.make(group, own);
          }
        });
  }

  @ParameterizedTest
  @CsvSource({"-1, 0", "1, 60"}) // ten calls, each rank to each other
  void noMessagesAreSentUnlessARankAsksForThem(int asking, int expected) {
    run(
        (group, own) -> {
          RendezvousChoice.choose(group, group.rank() == asking ? MESSAGES : NONE, true);
          GroupCommunicator communicator = new GroupCommunicator(group);
          own.barrier();
          callMessages.set(0);
          own.barrier();
          for (int i = 0; i < CALLS; i++) {
            communicator.barrier();
          }
          own.barrier();
          assertEquals(expected, callMessages.get());
          own.barrier();
        });
  }

  /**
   * Of a buffer that does not travel with the call. In a first call, its memory may be gone before
   * the others map it. A close during a later call waits for the call.
   */
  @Test
  void aRankThatClosesABufferInACallIsNamed() {
    run(
        (group, own) -> {
          NodeMemory memory =
              NodeMemory.share(new GroupCommunicator(group), SharedMemoryRendezvous.BYTES);
          SharedMemoryRendezvous rendezvous =
              new SharedMemoryRendezvous(memory, group.rank(), group.size(), () -> {});
          group.parts().arrivals().useRendezvous(rendezvous);
          try (HostDevice device = new HostDevice();
              SharedMemoryReducer reducer =
                  new SharedMemoryReducer("shared", group, rendezvous, device, memory)) {
            device.share(memory.files());
            DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 1000).named("w");
            own.barrier();
            Thread caller = Thread.currentThread();
            Thread closer =
                new Thread(
                    () -> {
                      awaitCall(caller);
                      buffer.close();
                      memoryIsGone.countDown();
                    });
            if (group.rank() == 1) {
              closer.start();
            } else {
              memoryIsGone.await();
            }
            String message =
                assertThrows(
                        RankLostException.class,
                        () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)))
                    .getMessage();
            closer.join();
            assertTrue(message.contains("closed its buffer during the call"), message);
            assertTrue(message.contains("FLOAT32[1000] \"w\""), message);
            assertTrue(message.contains("rank 1 ") || group.rank() == 1, message);
            own.barrier();
          }
        });
  }

  /** Returns when a thread waits for the other ranks. */
  private static void awaitCall(Thread caller) {
    while (Arrays.stream(caller.getStackTrace())
        .noneMatch(frame -> frame.getMethodName().equals("awaitLong"))) {
      Thread.yield();
    }
  }

  @Test
  void callsAreComparedAndAveragesAreRight() {
    run(
        (group, own) -> {
          RendezvousChoice.choose(group, NONE, true);
          try (HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device);
              DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 5)) {
            DeviceBuffer part = buffer.slice(0, group.rank() == 1 ? 4 : 5);
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM)));
            assertTrue(e.getMessage().contains("rank 1: allReduce(FLOAT32[4], SUM)"), e::toString);
            for (int call = 0; call < 3; call++) {
              float own0 = group.rank() + call;
              buffer.copyFrom(new float[] {own0, 1, 2, 3, 4});
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
              float[] result = new float[5];
              buffer.copyTo(result);
              assertArrayEquals(new float[] {1 + call, 1, 2, 3, 4}, result);
            }
          }
        });
  }

  @Test
  void failuresReachTheOtherRanks() {
    run(
        (group, own) -> {
          RendezvousChoice.choose(group, NONE, true);
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          if (group.rank() == 1) {
            synchronized (group) {
              group.broken("the disk is full", null);
            }
            own.barrier();
          } else {
            own.barrier();
            RankLostException e = assertThrows(RankLostException.class, communicator::barrier);
            assertTrue(e.getMessage().contains("the disk is full, rank=1"), e::toString);
          }
        });
  }

  @Test
  void invalidSettingsAreRejected() {
    IllegalArgumentException e =
        assertThrows(
            IllegalArgumentException.class,
            () -> GradientSync.builder().set("dev.rendezvous", "board").create());
    assertEquals(
        "unknown value: gradientsync.dev.rendezvous=board; give messages, or nothing",
        e.getMessage());
  }

  private final class CountedMeetings extends OtherWorld {
    private static final int CHANNELS = 1 << Channel.BITS;

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      boolean says = tag % CHANNELS == Channel.CALLS;
      return tag >= CHANNELS && says
          ? beforeStarts(message, callMessages::incrementAndGet)
          : message;
    }
  }
}

package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.gradientsync.DeviceException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** With which code ranks end after a call that has failed on one of them. */
@Timeout(60)
class GivenUpTest {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Timeouts TIMEOUTS = new Timeouts(LONG, LONG, Optional.empty());
  private static final int FAILED = 1;

  static Stream<Arguments> failures() {
    return Stream.of(
        Arguments.of(new OutOfMemoryError("heap"), FAILED),
        Arguments.of(new IllegalStateException("a bug"), FAILED),
        Arguments.of(new UnavailableException("no denormals"), FAILED),
        Arguments.of(new InternalError("a file is gone"), RankLostException.EXIT_CODE),
        Arguments.of(new DeviceException("ECC", 214), RankLostException.EXIT_CODE),
        Arguments.of(null, RankLostException.EXIT_CODE));
  }

  /** Whatever a reducer throws there, which may come from its transport itself. */
  @Test
  void aBodyThatThrowsBreaksTheGroup() {
    breaks(
        OtherWorld::new,
        group ->
            group.run(
                Origin.SYNC,
                new HostCall(Kind.BARRIER, null, null, RankGroup.NO_RANK),
                call -> {
                  throw new RankLostException("a wire is cut");
                }));
  }

  /** The message belongs to the rendezvous, in which rank 0 looks for all others. */
  @Test
  void aLossThatAMessageFindsIsOfTheOtherRank() {
    LocalRanks.run(
        2,
        own -> {
          AtomicBoolean cut = new AtomicBoolean();
          OtherWorld wires =
              new OtherWorld() {
                @Override
                public Message receiver(ByteBuffer memory, int peer, int tag) {
                  return new OtherMessage(super.receiver(memory, peer, tag)) {
                    @Override
                    public boolean test() {
                      if (cut.get()) {
                        throw new RankLostException("a wire is cut");
                      }
                      return super.test();
                    }
                  };
                }
              };
          ProcessGroup world = ProcessGroup.world(wires);
          GroupCommunicator communicator = new GroupCommunicator(world.split(0, 0, TIMEOUTS));
          communicator.barrier();
          own.barrier();
          if (own.rank() == 0) {
            cut.set(true);
            String message =
                assertThrows(RankLostException.class, communicator::barrier).getMessage();
            assertTrue(message.startsWith("rank 1 is lost: a wire is cut, rank=0"), message);
            cut.set(false);
          }
          own.barrier();
          world.close();
        });
  }

  @Test
  void aTransportThatThrowsBreaksTheGroup() {
    AtomicBoolean cut = new AtomicBoolean();
    breaks(
        () ->
            new OtherWorld() {
              @Override
              public Message sender(ByteBuffer memory, int peer, int tag) {
                return beforeStarts(
                    super.sender(memory, peer, tag),
                    () -> {
                      if (rank() == 1 && cut.getAndSet(false)) {
                        throw new IllegalStateException("a wire is cut");
                      }
                    });
              }
            },
        group -> {
          cut.set(true);
          new GroupCommunicator(group).barrier();
        });
  }

  /** Expects both ranks' next call to say why rank 1's has failed. */
  private static void breaks(Supplier<Transport> transport, Consumer<ProcessGroup> call) {
    LocalRanks.run(
        2,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(transport.get());
              ProcessGroup group = world.split(0, world.rank(), TIMEOUTS)) {
            GroupCommunicator communicator = new GroupCommunicator(group);
            if (group.rank() == 1) {
              assertThrows(RankLostException.class, () -> call.accept(group));
              assertTrue(group.isBroken());
            }
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> {
                      communicator.barrier(); // for which rank 1 may have come
                      communicator.barrier();
                    });
            assertTrue(e.getMessage().contains("a wire is cut"), e.getMessage());
            own.barrier();
          }
        });
  }

  /** Only a failure that may not come again is worth a restart. */
  @ParameterizedTest
  @MethodSource("failures")
  void allRanksEndWithTheSameCode(Throwable cause, int code) {
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        own -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          try (ProcessGroup group = world.split(0, world.rank(), TIMEOUTS)) {
            GroupCommunicator communicator = new GroupCommunicator(group);
            communicator.barrier();
            if (group.rank() == 1) {
              synchronized (group) {
                assertEquals(code, group.broken("the call failed", cause).exitCode());
              }
              over.countDown();
            }
            over.await();
            RankLostException e =
                assertThrows(RankLostException.class, communicator::barrier, "" + group.rank());
            assertEquals(code, e.exitCode(), e.getMessage());
            String how = group.rank() == 1 ? "is broken by an earlier" : " gave up in the middle ";
            assertTrue(e.getMessage().contains(how), e.getMessage());
          }
        });
  }
}

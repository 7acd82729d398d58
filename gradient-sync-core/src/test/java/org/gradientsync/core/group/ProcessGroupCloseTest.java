package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a group releases when it is closed. */
@Timeout(60)
class ProcessGroupCloseTest {
  /** Messages whose close always fails. */
  private static final class NoEnd extends OtherWorld {
    private final Set<Message> open = new HashSet<>();
    private boolean closed;

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      return noEnd(super.sender(memory, peer, tag));
    }

    @Override
    public Message receiver(ByteBuffer memory, int peer, int tag) {
      return noEnd(super.receiver(memory, peer, tag));
    }

    private Message noEnd(Message message) {
      Message failing =
          new OtherMessage(message) {
            @Override
            public void close() {
              super.close();
              open.remove(this);
              throw new GradientSyncException("message cannot be ended");
            }
          };
      open.add(failing);
      return failing;
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  @Test
  void aFailedMessageCloseDoesNotSkipTheRest() {
    LocalRanks.run(
        3,
        sync -> {
          NoEnd transport = new NoEnd();
          ProcessGroup world = ProcessGroup.world(transport);
          new GroupCommunicator(world).barrier();
          world.parts().arrivals().carryContributions();
          GradientSyncException e = assertThrows(GradientSyncException.class, world::close);
          assertEquals("message cannot be ended", e.getMessage());
          assertEquals(Set.of(), transport.open);
          assertTrue(transport.closed);
        });
  }

  /** Whatever a backend's transport throws. */
  @Test
  void aNoticeThatCannotBeSentDoesNotSkipTheRest() {
    LocalRanks.run(
        2,
        sync -> {
          AtomicBoolean closed = new AtomicBoolean();
          Transport transport =
              new OtherWorld() {
                @Override
                public Message sender(ByteBuffer memory, int peer, int tag) {
                  throw new IllegalStateException("a wire is cut");
                }

                @Override
                public void close() {
                  closed.set(true);
                }
              };
          ProcessGroup.world(transport).close();
          assertTrue(closed.get());
        });
  }
}

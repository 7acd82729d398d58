package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class MessageMatcherTest {
  /** As for buffers of a GPU that are exchanged through memory of the host. */
  @Test
  void whatMovesMessagesMayExchangeOthers() {
    LocalRanks.run(
        2,
        sync -> {
          try (ProcessGroup group = ProcessGroup.world(new OtherWorld());
              DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 4);
              DeviceBuffer copy = sync.allocate(DataType.FLOAT32, 3)) {
            int peer = 1 - sync.rank();
            List<CollectiveCall> messages =
                List.of(CollectiveCall.send(buffer, peer), CollectiveCall.receive(buffer, peer));
            List<CollectiveCall> copies =
                List.of(CollectiveCall.receive(copy, peer), CollectiveCall.send(copy, peer));
            List<List<CollectiveCall>> moved = new ArrayList<>();
            group.exchange(
                messages,
                round -> {
                  group.exchange(copies, inner -> moved.add(List.copyOf(inner)));
                  moved.add(List.copyOf(round));
                });
            assertEquals(List.of(copies, messages), moved);
            sync.barrier();
          }
        });
  }
}

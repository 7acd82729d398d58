package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLongArray;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;

class BroadcastPlanTest {
  private static final int RANKS = 7;

  @Test
  void eachPlaceReceivesOnceInFewRounds() {
    for (boolean chained : new boolean[] {false, true}) {
      for (int size = 2; size < 70; size++) {
        int rounds = Integer.SIZE - Integer.numberOfLeadingZeros(size - 1);
        int[] times = new int[size]; // the round in which a place has the elements
        int reached = 1;
        for (int place = 0; place < size; place++) { // a place receives from a smaller one
          int round = times[place];
          for (int target : BroadcastPlan.targets(place, size, chained)) {
            assertEquals(place, BroadcastPlan.source(target, chained));
            times[target] = ++round;
            reached++;
            assertTrue(chained || round <= rounds, "size=" + size + ", place=" + target);
          }
        }
        assertEquals(size, reached);
        assertEquals(0, BroadcastPlan.source(0, chained));
      }
    }
  }

  /** Small, and so large that it passes from rank to rank, in pieces the last of which is short. */
  @Test
  void allRanksGetTheElementsOfEachRoot() {
    AtomicLongArray messages = new AtomicLongArray(RANKS);
    AtomicLongArray bytes = new AtomicLongArray(RANKS);
    LocalRanks.run(
        RANKS,
        own -> {
          try (ProcessGroup group = ProcessGroup.world(new Counted(messages, bytes));
              HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device)) {
            for (int count : new int[] {1, 100, 50_001}) {
              for (int root = 0; root < RANKS; root++) {
                float[] expected = new float[count];
                Random random = new Random(root);
                for (int i = 0; i < count; i++) {
                  expected[i] = random.nextFloat();
                }
                long before = messages.get(own.rank());
                long bytesBefore = bytes.get(own.rank());
                try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
                  buffer.copyFrom(own.rank() == root ? expected : new float[count]);
                  reducer.run(CollectiveCall.broadcast(buffer, root));
                  float[] actual = new float[count];
                  buffer.copyTo(actual);
                  assertArrayEquals(expected, actual);
                }
                long sent = messages.get(own.rank()) - before;
                boolean small = count <= 100;
                assertTrue(!small || sent <= 3, "sent=" + sent);
                assertTrue(
                    small || bytes.get(own.rank()) - bytesBefore <= count * (long) Float.BYTES);
              }
            }
          }
        });
  }

  private static final class Counted extends OtherWorld {
    private final AtomicLongArray messages;
    private final AtomicLongArray bytes;

    Counted(AtomicLongArray messages, AtomicLongArray bytes) {
      this.messages = messages;
      this.bytes = bytes;
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      int size = memory.remaining();
      return tag % (1 << Channel.BITS) != Channel.DATA
          ? message
          : beforeStarts(
              message,
              () -> {
                messages.incrementAndGet(rank());
                bytes.addAndGet(rank(), size);
              });
    }
  }
}

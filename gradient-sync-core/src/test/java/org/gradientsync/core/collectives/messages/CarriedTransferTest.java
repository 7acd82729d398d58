package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Small collectives of ranks that take each other for ranks of several nodes. */
class CarriedTransferTest {
  private static final Settings NONE = new Settings(Map.of());
  private static final int ROOT = 1;

  @ParameterizedTest
  @ValueSource(ints = {3, 6, 7})
  void smallCollectivesTravelWithTheirCalls(int ranks) {
    LocalRanks.run(
        ranks,
        own -> {
          Nodes world = new Nodes();
          try (ProcessGroup all = ProcessGroup.world(world);
              ProcessGroup group = all.split(0, all.rank(), NONE.timeouts());
              HostDevice device = new HostDevice()) {
            RendezvousChoice.choose(group, NONE, true);
            try (MessageReducer reducer = new MessageReducer("messages", group, device)) {
              world.sent.set(0);
              for (int call = 0; call < 3; call++) { // both slots
                for (int count : new int[] {0, 1, 5}) {
                  Runs runs = new Runs(own, device, reducer, count, call);
                  runs.compare(Kind.ALL_GATHER, 1, ranks);
                  runs.compare(Kind.REDUCE_SCATTER, ranks, 1);
                  runs.compare(Kind.ALL_TO_ALL, ranks, ranks);
                  runs.compare(Kind.GATHER, 1, ranks);
                  runs.compare(Kind.SCATTER, ranks, 1);
                  runs.compareInPlace(Kind.BROADCAST);
                  runs.compareInPlace(Kind.REDUCE);
                }
              }
              assertEquals(0, world.sent.get(), "messages with elements");
            }
          }
        });
  }

  /** Makes a call on the reducer and on another sync, whose results are right. */
  private record Runs(
      GradientSync own, HostDevice device, MessageReducer reducer, int count, int call) {
    void compare(Kind kind, int inBlocks, int outBlocks) {
      int rank = own.rank();
      boolean hasIn = kind != Kind.SCATTER || rank == ROOT;
      boolean hasOut = kind != Kind.GATHER || rank == ROOT;
      try (DeviceBuffer in = values(count * inBlocks, 1);
          DeviceBuffer out = values(count * outBlocks, 9);
          DeviceBuffer expected = values(count * outBlocks, 9)) {
        run(kind, hasIn ? in : null, hasOut ? out : null);
        switch (kind) {
          case ALL_GATHER -> own.allGather(in, expected);
          case REDUCE_SCATTER -> own.reduceScatter(in, expected, ReduceOp.AVERAGE);
          case ALL_TO_ALL -> own.allToAll(in, expected);
          case GATHER -> own.gather(in, hasOut ? expected : null, ROOT);
          default -> own.scatter(hasIn ? in : null, expected, ROOT);
        }
        assertSame(kind, expected, out);
      }
    }

    void compareInPlace(Kind kind) {
      try (DeviceBuffer data = values(count, 1);
          DeviceBuffer expected = values(count, 1)) {
        boolean reduces = kind == Kind.REDUCE;
        run(kind, data, !reduces || own.rank() == ROOT ? data : null);
        if (reduces) {
          own.reduce(expected, ReduceOp.AVERAGE, ROOT);
        } else {
          own.broadcast(expected, ROOT);
        }
        if (!reduces || own.rank() == ROOT) {
          assertSame(kind, expected, data);
        }
      }
    }

    private void run(Kind kind, DeviceBuffer in, DeviceBuffer out) {
      boolean rooted = kind != Kind.ALL_GATHER && kind != Kind.ALL_TO_ALL;
      int root = rooted && kind != Kind.REDUCE_SCATTER ? ROOT : RankGroup.NO_RANK;
      ReduceOp op = kind.reduces() ? ReduceOp.AVERAGE : null;
      reducer.run(new CollectiveCall(kind, in, out, op, root));
    }

    private DeviceBuffer values(int length, int seed) {
      float[] values = new float[length];
      for (int i = 0; i < length; i++) {
        values[i] = seed + call + 0.3f * own.rank() + 0.7f * i;
      }
      DeviceBuffer buffer = own.allocate(DataType.FLOAT32, length);
      buffer.copyFrom(values);
      return buffer;
    }

    private void assertSame(Kind kind, DeviceBuffer expected, DeviceBuffer actual) {
      float[] right = new float[(int) expected.count()];
      float[] found = new float[right.length];
      expected.copyTo(right);
      actual.copyTo(found);
      assertArrayEquals(right, found, 0, kind + ", count=" + count + ", rank=" + own.rank());
    }
  }

  /** Two ranks a node; counts the messages with elements that are started. */
  private static final class Nodes extends OtherWorld {
    private final AtomicInteger sent = new AtomicInteger();

    Nodes() {
      super(rank -> rank / 2);
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      return tag % (1 << Channel.BITS) != Channel.DATA
          ? message
          : beforeStarts(message, sent::incrementAndGet);
    }
  }
}

package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;

/** Ranks connect when they have something to say, so not each with each. */
class FewConnectionsTest {
  private static final int SIZE = 32;
  private static final int JOBS = 5;

  /** All pairs would be 496. Ranks that wait for long ask more others, so one job may have more. */
  @Test
  void ranksThatMeetHaveLogarithmicallyManyConnections() throws Exception {
    int most = 3 * SIZE * Integer.numberOfTrailingZeros(SIZE) / 2;
    int least = Integer.MAX_VALUE;
    for (int job = 0; job < JOBS && least > most; job++) {
      least = Math.min(least, connectionsOfAJob());
    }
    assertTrue(SIZE - 1 <= least && least <= most, "connections=" + least + ", most=" + most);
  }

  private static int connectionsOfAJob() throws Exception {
    int port = Ranks.freePort();
    CyclicBarrier all = new CyclicBarrier(SIZE);
    List<Integer> ends =
        ThreadRanks.run(
            port,
            SIZE,
            (rank, builder) -> {
              try (GradientSync sync = builder.create()) {
                sync.barrier();
                all.await();
                int count = connections(port, rank);
                all.await();
                return count;
              }
            });
    return ends.stream().mapToInt(Integer::intValue).sum() / 2;
  }

  private static int connections(int port, int rank) {
    Map<String, String> coordinates =
        Map.of(
            "tcp.rank",
            Integer.toString(rank),
            "tcp.size",
            Integer.toString(SIZE),
            "tcp.master",
            "127.0.0.1:" + port,
            "tcp.secret",
            "of the tests");
    Transport ofSync = new TcpLauncher().connect(new Settings(coordinates));
    ByteBuffer none = ByteBuffer.allocateDirect(0);
    return (int)
        IntStream.range(0, SIZE)
            .filter(peer -> peer != rank)
            .mapToObj(peer -> (SendMessage) ofSync.sender(none, peer, 0))
            .filter(message -> message.peer().isConnected())
            .count();
  }
}

package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.MockMakers;

/** How the ranks of a job let another one join, if some do not learn that all have come. */
class AdmissionTest {
  private static final int SIZE = 4;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final CyclicBarrier haveLeft = new CyclicBarrier(SIZE);
  private int port;

  /** What a rank does between the steps of a training. */
  private interface Meeting {
    GradientSync meet(GradientSyncImpl sync) throws InterruptedException;
  }

  /** A reducer that nobody can use, for which a rank looks in vain, or fails. */
  public static final class Failing implements ReducerProvider {
    private static final AtomicInteger FAILS = new AtomicInteger(); // the size of its sync

    private static final class Failure extends Error {
      private static final long serialVersionUID = 1;
    }

    @Override
    public String name() {
      return "failing";
    }

    @Override
    public int priority() {
      return 1_000; // asked first
    }

    @Override
    public Availability availability(SyncContext context) {
      RankGroup group = context.group();
      if (group.rank() == SIZE - 1 && FAILS.compareAndSet(SIZE, 0)) {
        throw new Failure();
      }
      return Availability.no("it is for tests");
    }

    @Override
    public Reducer create(SyncContext context) {
      throw new IllegalStateException("not available");
    }
  }

  private GradientSync.Builder builder(int rank) {
    return GradientSync.builder()
        .device("host")
        .timeout(Duration.ofSeconds(20))
        .set("elastic", "true")
        .set("tcp.rank", Integer.toString(rank))
        .set("tcp.size", Integer.toString(SIZE))
        .set("tcp.master", "127.0.0.1:" + port);
  }

  /** The last rank leaves, and comes again; the others meet. Returns each one's sum of ones. */
  private List<Double> sums(Meeting meeting) throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = socket.getLocalPort();
    }
    List<Future<Double>> sums = new ArrayList<>();
    for (int i = 0; i < SIZE; i++) {
      int rank = i;
      sums.add(threads.submit(() -> rank == SIZE - 1 ? leaves(rank) : stays(rank, meeting)));
    }
    try {
      List<Double> results = new ArrayList<>();
      for (Future<Double> sum : sums) {
        results.add(sum.get(1, TimeUnit.MINUTES));
      }
      return results;
    } finally {
      threads.shutdownNow();
    }
  }

  private double leaves(int rank) throws Exception {
    builder(rank).create().close();
    haveLeft.await();
    while (true) {
      try (GradientSync again = builder(rank).create()) {
        return again.mean(again.size());
      } catch (RankLostException | Failing.Failure e) {
        // the others do not go on with this one, and it is started again
      }
    }
  }

  private double stays(int rank, Meeting meeting) throws Exception {
    GradientSync all = builder(rank).create();
    haveLeft.await();
    GradientSyncImpl sync = (GradientSyncImpl) all.survivors();
    assertEquals(SIZE - 1, sync.size());
    try (GradientSync next = meeting.meet(sync)) {
      return next.mean(next.size());
    }
  }

  private GradientSync admit(GradientSyncImpl sync, boolean learnsIt) throws InterruptedException {
    while (!sync.communicator().any(sync.newcomers() > 0)) {
      Thread.sleep(1);
    }
    if (learnsIt) {
      return sync.admit();
    }
    Communicator real = sync.choice.communicator();
    Communicator ranks =
        mock(
            Communicator.class,
            withSettings().mockMaker(MockMakers.SUBCLASS).defaultAnswer(delegatesTo(real)));
    doAnswer(
            call -> {
              real.all(call.getArgument(0));
              throw new RankLostException("as if another rank was lost");
            })
        .when(ranks)
        .all(anyBoolean());
    return new Succession(sync, sync.selection, ranks).withNewcomers();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void aRankThatDoesNotLearnItFollowsTheOthers(int odd) throws Exception {
    List<Double> sums =
        sums(
            sync -> {
              try {
                return admit(sync, sync.rank() != odd);
              } catch (RankLostException e) {
                return sync.survivors();
              }
            });
    assertEquals(List.of(4.0, 4.0, 4.0, 4.0), sums);
  }

  /** Nobody has gone, so all stay. */
  @Test
  void ranksOfWhichNoneLearnsItStayTogether() throws Exception {
    List<Double> sums =
        sums(
            sync -> {
              GradientSync first;
              try {
                first = admit(sync, false);
              } catch (RankLostException e) {
                first = sync.survivors();
              }
              return admit((GradientSyncImpl) first, true);
            });
    assertEquals(List.of(4.0, 4.0, 4.0, 4.0), sums);
  }

  /** What the others had opened with it is closed when they are. */
  @Test
  void aNewcomerThatFailsLeavesNothingOpen() throws Exception {
    Set<Thread> before = threadsOfJobs();
    List<Double> sums =
        sums(
            sync -> {
              Failing.FAILS.set(SIZE); // the rank that comes
              GradientSyncImpl same = (GradientSyncImpl) admit(sync, true);
              assertEquals(SIZE - 1, same.size());
              return admit(same, true);
            });
    assertEquals(List.of(4.0, 4.0, 4.0, 4.0), sums);
    Set<Thread> left = threadsOfJobs();
    left.removeAll(before);
    for (Thread thread : left) {
      thread.join(TimeUnit.SECONDS.toMillis(20));
      assertFalse(thread.isAlive(), thread.toString());
    }
  }

  private static Set<Thread> threadsOfJobs() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("gradient-sync-tcp"))
        .collect(Collectors.toCollection(HashSet::new));
  }
}

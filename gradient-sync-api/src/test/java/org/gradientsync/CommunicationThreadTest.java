package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One after the other, and an end in any case. */
@Timeout(60)
class CommunicationThreadTest {
  private final CommunicationThread thread = new CommunicationThread(3);
  private final List<Integer> done = Collections.synchronizedList(new ArrayList<>());

  @AfterEach
  void close() {
    Thread.interrupted();
    thread.close();
  }

  /** Work that ends when its thread is interrupted, as waiting for other ranks does. */
  private static Runnable waitsFor(CountDownLatch latch) {
    return () -> {
      try {
        latch.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt(); // a rank's wait leaves it so
        throw new RankLostException("interrupted while waiting");
      }
    };
  }

  private Thread started() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(t -> t.getName().equals("gradient-sync-3") && t.isAlive())
        .findAny()
        .orElseThrow();
  }

  @Test
  void carriesOutInOrderOnADaemon() {
    assertTrue(started().isDaemon());
    long last = 0;
    for (int i = 0; i < 1000; i++) {
      int number = i;
      long ticket = thread.hand(() -> done.add(number));
      assertEquals(last + 1, ticket);
      last = ticket;
    }
    thread.await(500);
    assertTrue(done.size() >= 500);
    thread.await(last);
    assertEquals(IntStream.range(0, 1000).boxed().toList(), done);
    thread.await(0); // what nobody handed over
    thread.awaitAll();
  }

  @Test
  void awaitWaitsForNothingLater() {
    CountDownLatch latch = new CountDownLatch(1);
    long first = thread.hand(() -> done.add(1));
    long second = thread.hand(waitsFor(latch));
    thread.await(first);
    assertEquals(List.of(1), done);
    latch.countDown();
    thread.await(second);
  }

  @Test
  void aFailureIsThrownForItsWorkAndAllThatComesAfter() {
    CountDownLatch latch = new CountDownLatch(1);
    MismatchedCallException mine = new MismatchedCallException("mine");
    long before = thread.hand(waitsFor(latch));
    long failing =
        thread.hand(
            () -> {
              throw mine;
            });
    long after = thread.hand(() -> done.add(2));
    latch.countDown();
    assertSame(mine, assertThrows(MismatchedCallException.class, () -> thread.await(after)));
    thread.await(before); // has gone well
    assertSame(mine, assertThrows(MismatchedCallException.class, () -> thread.await(failing)));
    assertSame(mine, assertThrows(MismatchedCallException.class, thread::awaitAll));
    long later = thread.hand(() -> done.add(3));
    assertSame(mine, assertThrows(MismatchedCallException.class, () -> thread.await(later)));
    assertEquals(List.of(), done); // nothing has been carried out since
  }

  @Test
  void errorsAreThrownToo() {
    OutOfMemoryError mine = new OutOfMemoryError("mine");
    long ticket =
        thread.hand(
            () -> {
              throw mine;
            });
    assertSame(mine, assertThrows(OutOfMemoryError.class, () -> thread.await(ticket)));
  }

  @Test
  void anInterruptReachesTheWorkAndStaysSet() {
    long ticket = thread.hand(waitsFor(new CountDownLatch(1)));
    Thread.currentThread().interrupt();
    assertThrows(RankLostException.class, () -> thread.await(ticket));
    assertTrue(Thread.interrupted());
    assertThrows(RankLostException.class, thread::awaitAll);
  }

  @Test
  void anInterruptAfterTheWorkHarmsNothing() {
    long ticket = thread.hand(() -> done.add(1));
    thread.await(ticket);
    Thread.currentThread().interrupt();
    thread.await(ticket);
    assertTrue(Thread.interrupted());
    started().interrupt(); // it is waiting for work
    thread.await(thread.hand(() -> done.add(2)));
    thread.await(thread.hand(() -> assertFalse(Thread.currentThread().isInterrupted())));
    assertEquals(List.of(1, 2), done);
  }

  @Test
  void abandonEndsWhatIsUnderWayAndDropsTheRest() {
    long first = thread.hand(waitsFor(new CountDownLatch(1)));
    long second = thread.hand(() -> done.add(1));
    thread.abandon(second);
    assertEquals(List.of(), done);
    IllegalStateException e = assertThrows(IllegalStateException.class, () -> thread.await(first));
    assertTrue(e.getMessage().contains("rank=3"), e.getMessage());
    thread.abandon(second);
  }

  @Test
  void abandonLeavesWhatIsDone() {
    long ticket = thread.hand(() -> done.add(1));
    thread.await(ticket);
    thread.abandon(ticket);
    thread.await(thread.hand(() -> done.add(2)));
    assertEquals(List.of(1, 2), done);
  }

  @Test
  void abandonThrowsNothingWhateverTheWorkDoes() {
    CountDownLatch never = new CountDownLatch(1);
    long ticket =
        thread.hand(
            () -> {
              try {
                never.await();
              } catch (InterruptedException e) {
                throw new AssertionError("mine", e);
              }
            });
    thread.abandon(ticket);
  }

  @Test
  void closingEndsTheThread() throws InterruptedException {
    Thread own = started();
    thread.hand(waitsFor(new CountDownLatch(1)));
    thread.close();
    thread.close();
    own.join();
    IllegalStateException e =
        assertThrows(IllegalStateException.class, () -> thread.hand(() -> done.add(1)));
    assertTrue(e.getMessage().contains("sync is closed: rank=3"), e.getMessage());
    assertEquals(List.of(), done);
  }

  @Test
  void theThreadItselfDoesNotWaitForItself() {
    thread.await(thread.hand(thread::awaitAll));
  }
}

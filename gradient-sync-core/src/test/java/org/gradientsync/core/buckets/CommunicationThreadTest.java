package org.gradientsync.core.buckets;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the order of work, failures, cancellation and closing. */
@Timeout(60)
class CommunicationThreadTest {
  private final List<String> givenUp = Collections.synchronizedList(new ArrayList<>());
  private final CommunicationThread thread =
      new CommunicationThread(3, (why, cause) -> givenUp.add(why));
  private final CommunicationThread.Lane lane = thread.lane();
  private final CommunicationThread.Lane other = thread.lane();
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
  void runsWorkInOrderOnADaemon() {
    assertTrue(started().isDaemon());
    long last = 0;
    for (int i = 0; i < 1000; i++) {
      int number = i;
      long ticket = lane.submit(() -> done.add(number));
      assertEquals(last + 1, ticket);
      last = ticket;
    }
    lane.await(500);
    assertTrue(done.size() >= 500);
    lane.await(last);
    assertEquals(IntStream.range(0, 1000).boxed().toList(), done);
    lane.await(0); // a ticket before the first
    thread.awaitAll();
  }

  @Test
  void awaitDoesNotWaitForLaterWork() {
    CountDownLatch latch = new CountDownLatch(1);
    long first = lane.submit(() -> done.add(1));
    long second = lane.submit(waitsFor(latch));
    lane.await(first);
    assertEquals(List.of(1), done);
    latch.countDown();
    lane.await(second);
  }

  @Test
  void aFailureIsThrownForItsWorkAndAllLaterWork() {
    CountDownLatch latch = new CountDownLatch(1);
    IllegalArgumentException mine = new IllegalArgumentException("mine");
    long before = lane.submit(waitsFor(latch));
    long failing = lane.submit(() -> fail(mine));
    long after = lane.submit(() -> done.add(2));
    long another = other.submit(() -> done.add(3));
    latch.countDown();
    assertSame(mine, assertThrows(IllegalArgumentException.class, () -> lane.await(after)));
    lane.await(before); // succeeded
    assertSame(mine, assertThrows(IllegalArgumentException.class, () -> lane.await(failing)));
    assertBroken(mine, thread::awaitAll);
    assertBroken(mine, () -> other.await(another));
    other.await(before);
    long later = lane.submit(() -> done.add(4));
    assertSame(mine, assertThrows(IllegalArgumentException.class, () -> lane.await(later)));
    assertEquals(List.of(), done); // all later work was skipped
    assertEquals(
        List.of(
            "a call in the background has failed: error=java.lang.IllegalArgumentException: mine"),
        givenUp);
  }

  private static void fail(RuntimeException e) {
    throw e;
  }

  @Test
  void survivesExceptionsThatJavaWouldDeclare() {
    IOException mine = new IOException("mine");
    CommunicationThread own =
        new CommunicationThread(4, (why, cause) -> {}); // if it dies, nobody must wait for it
    CommunicationThread.Lane first = own.lane();
    long failing = first.submit(() -> CommunicationThreadTest.<Error>raise(mine));
    assertTimeoutPreemptively(
        Duration.ofSeconds(30),
        () -> {
          Exception e = assertThrows(GradientSyncException.class, () -> first.await(failing));
          assertSame(mine, e.getCause());
          assertSame(e, assertThrows(IllegalStateException.class, own::awaitAll).getCause());
          own.close();
        });
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void raise(Throwable thrown) throws T {
    throw (T) thrown;
  }

  private static void assertBroken(Throwable cause, Runnable call) {
    Exception e = assertThrows(IllegalStateException.class, call::run);
    assertSame(cause, e.getCause());
    assertEquals(
        "sync is broken by an earlier failure in the background, rank=3: " + cause.getMessage(),
        e.getMessage());
  }

  @Test
  void failuresOfAllRanksEndOnlyTheirLane() {
    for (RuntimeException mine :
        List.of(
            new NotFiniteException("mine"),
            new MismatchedCallException("mine"),
            new RankLostException("mine"))) {
      CommunicationThread.Lane own = thread.lane();
      done.clear();
      long failing = own.submit(() -> fail(mine));
      long after = own.submit(() -> done.add(1));
      long another = other.submit(() -> done.add(2));
      assertSame(mine, assertThrows(RuntimeException.class, () -> own.await(failing)));
      assertSame(mine, assertThrows(RuntimeException.class, () -> own.await(after)));
      other.await(another);
      thread.awaitAll();
      own.abandon(own.submit(() -> done.add(3))); // does nothing
      other.await(other.submit(() -> done.add(4)));
      assertEquals(List.of(2, 4), done);
    }
    assertEquals(List.of(), givenUp);
  }

  @Test
  void aFailureShowsWhereItWasAwaited() {
    RankLostException mine = new RankLostException("mine");
    long failing = lane.submit(() -> fail(mine));
    assertThrows(RankLostException.class, () -> lane.await(failing));
    Throwable place = mine.getSuppressed()[0];
    assertTrue(place.getMessage().contains("rank 3"), place.getMessage());
    assertTrue(
        Arrays.stream(place.getStackTrace())
            .anyMatch(frame -> frame.getClassName().equals(getClass().getName())));
  }

  @Test
  void errorsAreThrownToo() {
    OutOfMemoryError mine = new OutOfMemoryError("mine");
    long ticket =
        lane.submit(
            () -> {
              throw mine;
            });
    assertSame(mine, assertThrows(OutOfMemoryError.class, () -> lane.await(ticket)));
  }

  @Test
  void anInterruptReachesTheWorkAndStaysSet() {
    long ticket = lane.submit(waitsFor(new CountDownLatch(1)));
    Thread.currentThread().interrupt();
    assertThrows(RankLostException.class, () -> lane.await(ticket));
    assertTrue(Thread.interrupted());
  }

  @Test
  void anInterruptAfterTheWorkHarmsNothing() {
    long ticket = lane.submit(() -> done.add(1));
    lane.await(ticket);
    Thread.currentThread().interrupt();
    lane.await(ticket);
    assertTrue(Thread.interrupted());
    started().interrupt(); // it is waiting for work
    lane.await(lane.submit(() -> done.add(2)));
    lane.await(lane.submit(() -> assertFalse(Thread.currentThread().isInterrupted())));
    assertEquals(List.of(1, 2), done);
  }

  @Test
  void abandonCancelsRunningAndWaitingWork() {
    long first = lane.submit(waitsFor(new CountDownLatch(1)));
    long second = lane.submit(() -> done.add(1));
    lane.abandon(second);
    assertEquals(List.of(), done);
    assertThrows(
        RuntimeException.class, () -> lane.await(first)); // its interrupt, or its cancellation
    lane.abandon(second);
    IllegalStateException e = assertThrows(IllegalStateException.class, () -> other.await(second));
    assertTrue(e.getMessage().contains("rank=3"), e.getMessage());
    assertTrue(e.getMessage().contains("given up in the middle of a step"), e.getMessage());
    assertThrows(IllegalStateException.class, thread::awaitAll);
  }

  @Test
  void abandonKeepsCompletedWork() {
    long ticket = lane.submit(() -> done.add(1));
    lane.await(ticket);
    lane.abandon(ticket);
    lane.await(lane.submit(() -> done.add(2)));
    assertEquals(List.of(1, 2), done);
  }

  @Test
  void abandonDoesNotThrowFailuresOfTheWork() {
    CountDownLatch never = new CountDownLatch(1);
    long ticket =
        lane.submit(
            () -> {
              try {
                never.await();
              } catch (InterruptedException e) {
                throw new AssertionError("mine", e);
              }
            });
    lane.abandon(ticket);
  }

  @Test
  void closingEndsTheThread() throws InterruptedException {
    Thread own = started();
    lane.submit(waitsFor(new CountDownLatch(1)));
    thread.close();
    thread.close();
    own.join();
    IllegalStateException e =
        assertThrows(IllegalStateException.class, () -> lane.submit(() -> done.add(1)));
    assertTrue(e.getMessage().contains("sync is closed: rank=3"), e.getMessage());
    assertEquals(List.of(), done);
  }

  @Test
  void theThreadItselfDoesNotWaitForItself() {
    lane.await(lane.submit(thread::awaitAll));
  }
}

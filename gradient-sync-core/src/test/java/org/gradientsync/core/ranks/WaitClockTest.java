package org.gradientsync.core.ranks;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** How a wait's time is counted. */
class WaitClockTest {
  private long now = Long.MAX_VALUE - 5; // nanoTime may overflow
  private final WaitClock clock = new WaitClock(() -> now);

  @Test
  void timeAddsUpBetweenLooks() {
    assertEquals(0, clock.look());
    now += 3;
    assertEquals(3, clock.look());
    now += 1000;
    assertEquals(1003, clock.look());
    assertEquals(1003, clock.waited());
  }

  @Test
  void longGapsBetweenLooksDoNotCount() {
    now += 7;
    clock.look();
    now += Duration.ofHours(1).toNanos();
    assertEquals(7 + WaitClock.MAX_PER_LOOK.toNanos(), clock.look());
    now += 2;
    assertEquals(9 + WaitClock.MAX_PER_LOOK.toNanos(), clock.look());
  }

  @Test
  void manyShortStepsAddUp() {
    for (int second = 0; second < 60; second++) {
      for (int look = 0; look < 20; look++) {
        now += Duration.ofMillis(50).toNanos();
        clock.look();
      }
    }
    assertEquals(Duration.ofSeconds(60).toNanos(), clock.waited());
  }

  @Test
  void restartResetsToZero() {
    now += 10;
    clock.look();
    now += 20;
    clock.restart();
    assertEquals(0, clock.waited());
    now += 4;
    assertEquals(4, clock.look());
  }
}

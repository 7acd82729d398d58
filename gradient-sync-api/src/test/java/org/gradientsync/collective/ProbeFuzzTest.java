package org.gradientsync.collective;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import org.gradientsync.host.HostBuffers;

/** Probes as another rank may have sent them: any bytes. */
class ProbeFuzzTest {
  private static final int RANKS = 3;

  @FuzzTest
  void anyBytesAreReadOrRefused(FuzzedDataProvider data) {
    Probe probe = new Probe(HostBuffers.allocate(Probe.BYTES));
    for (int at = 0; at < Probe.BYTES; at += Long.BYTES) {
      // often what is nearly right
      probe.memory().putLong(at, data.consumeBoolean() ? data.consumeInt(-2, 18) : 0);
    }
    for (int i = data.consumeInt(0, 5); i > 0; i--) {
      probe.memory().putLong(8 * data.consumeInt(0, Probe.BYTES / 8 - 1), data.consumeLong());
    }
    Probe.Kind kind = probe.kind(RANKS);
    if (kind == null) {
      return;
    }
    assertTrue(kind == Probe.Kind.READ || probe.length() > 0);
    for (int i = 0; i < probe.length(); i++) {
      assertTrue(probe.waiting(i) >= 0 && probe.waiting(i) < RANKS);
      assertTrue(probe.awaited(i) >= 0 && probe.awaited(i) < RANKS);
      assertNotEquals(null, probe.phase(i));
      assertTrue(probe.indexOf(probe.waiting(i)) <= i);
    }
    String[] lines = probe.table(rank -> "rank " + rank).split("\n", -1);
    assertEquals(1 + probe.length(), lines.length);
    assertEquals(probe.length() == Probe.MOST, probe.isFull());
  }
}

package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import org.gradientsync.core.host.HostBuffers;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Probes as another rank may send them: any bytes. */
class ProbeFuzzTest {
  private static final int RANKS = 3;

  /** A probe of zeros except for two words: a chain of waits of rank 0 for itself. */
  private static Probe probe(long kind, long length) {
    Probe probe = new Probe(HostBuffers.allocate(Probe.BYTES));
    probe.memory().putLong(0, kind);
    probe.memory().putLong(8, length);
    return probe;
  }

  @FuzzTest
  void anyBytesAreReadOrRefused(FuzzedDataProvider data) {
    Probe probe = probe(data.consumeInt(0, 3), data.consumeInt(1, Probe.MAX + 1));
    for (int i = data.consumeInt(0, 50); i > 0; i--) {
      int at = Long.BYTES * data.consumeInt(0, Probe.BYTES / Long.BYTES - 1);
      // often almost valid
      probe
          .memory()
          .putLong(at, data.consumeBoolean() ? data.consumeInt(-2, 5) : data.consumeLong());
    }
    if (probe.kind(RANKS) != null) {
      requireReadable(probe);
    }
  }

  private static void requireReadable(Probe probe) {
    for (int i = 0; i < probe.length(); i++) {
      assertTrue(probe.waiting(i) >= 0 && probe.waiting(i) < RANKS);
      assertTrue(probe.awaited(i) >= 0 && probe.awaited(i) < RANKS);
      assertNotNull(probe.phase(i));
      assertTrue(probe.indexOf(probe.waiting(i)) <= i);
      assertEquals(probe.length() - i, probe.from(i).length());
    }
    assertTrue(probe.isSameCycle(probe.copy(Probe.Kind.FOUND)));
    String[] lines = probe.table(rank -> "rank " + rank).split("\n", -1);
    assertEquals(1 + probe.length() + (probe.skipped() > 0 ? 1 : 0), lines.length);
  }

  @ParameterizedTest
  @CsvSource({"0, 1, ASK", "0, 16, ASK", "1, 0, READ", "2, 2, FOUND"})
  void validProbesAreRead(long kind, long length, Probe.Kind expected) {
    assertEquals(expected, probe(kind, length).kind(RANKS));
    requireReadable(probe(kind, length));
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "2, 0", "0, 17", "0, -1", "3, 1", "-1, 1", "4294967296, 1", "0, 4294967297"})
  void invalidProbesAreRefused(long kind, long length) {
    assertEquals(null, probe(kind, length).kind(RANKS));
  }
}

package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Probes as another rank may send them: any bytes. */
class ProbeFuzzTest {
  private static final int RANKS = 3;

  /** A probe of zeros except for two words: a chain of waits of rank 0 for itself. */
  private static ByteBuffer probe(long kind, long length) {
    return HostBuffers.allocate(Probe.BYTES).putLong(0, kind).putLong(8, length);
  }

  @FuzzTest
  void anyBytesAreReadOrRefused(FuzzedDataProvider data) {
    ByteBuffer memory = probe(data.consumeInt(0, 3), data.consumeInt(1, Probe.MAX + 1));
    for (int i = data.consumeInt(0, 50); i > 0; i--) {
      int at = Long.BYTES * data.consumeInt(0, Probe.BYTES / Long.BYTES - 1);
      // often almost valid
      memory.putLong(at, data.consumeBoolean() ? data.consumeInt(-2, 5) : data.consumeLong());
    }
    Probe probe = Probe.decode(memory, RANKS);
    if (probe != null) {
      requireReadable(probe);
    }
  }

  private static void requireReadable(Probe probe) {
    int length = probe.waits.size();
    for (int i = 0; i < length; i++) {
      Probe.Wait wait = probe.waits.get(i);
      assertTrue(wait.waiting() >= 0 && wait.waiting() < RANKS);
      assertTrue(wait.awaited() >= 0 && wait.awaited() < RANKS);
      assertNotNull(wait.phase());
      assertTrue(probe.indexOf(wait.waiting()) <= i);
      assertEquals(length - i, new Probe(Probe.Kind.ASK, probe.group, probe, i).waits.size());
    }
    assertTrue(probe.isSameCycle(new Probe(Probe.Kind.FOUND, probe.group, probe, 0)));
    assertEquals(probe.waits, Probe.decode(probe.encode(1), RANKS).waits);
    String[] lines = probe.table(rank -> "rank " + rank).split("\n", -1);
    assertEquals(1 + length + (probe.skipped > 0 ? 1 : 0), lines.length);
  }

  @ParameterizedTest
  @CsvSource({"0, 1, ASK", "0, 15, ASK", "1, 0, READ", "2, 2, FOUND"})
  void validProbesAreRead(long kind, long length, Probe.Kind expected) {
    Probe probe = Probe.decode(probe(kind, length), RANKS);
    assertEquals(expected, probe.kind);
    assertEquals(length, probe.waits.size());
    requireReadable(probe);
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "2, 0", "0, 17", "0, -1", "3, 1", "-1, 1", "4294967296, 1", "0, 4294967297"})
  void invalidProbesAreRefused(long kind, long length) {
    assertNull(Probe.decode(probe(kind, length), RANKS));
  }
}

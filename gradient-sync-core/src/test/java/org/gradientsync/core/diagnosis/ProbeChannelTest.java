package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How probes reach their ranks. */
class ProbeChannelTest {
  private static final int RANKS = 3;

  @Test
  void eachRankReadsItsProbesInOrder() {
    LocalRanks.run(
        RANKS,
        sync -> {
          ProbeChannel channel = new ProbeChannel(transport());
          int next = (sync.rank() + 1) % RANKS;
          int previous = (sync.rank() + 2) % RANKS;
          channel.send(Probe.of(Probe.Kind.FOUND), next);
          channel.send(Probe.of(Probe.Kind.READ), next);
          sync.barrier();
          List<String> read = new ArrayList<>();
          channel.read((probe, from) -> read.add(from + " " + probe.memory().getLong(0)));
          long found = Probe.Kind.FOUND.ordinal();
          long wasRead = Probe.Kind.READ.ordinal();
          assertEquals(List.of(previous + " " + found, previous + " " + wasRead), read);
          sync.barrier();
          channel.close();
        });
  }

  /** All ranks look when one of them is late. */
  @ParameterizedTest
  @ValueSource(ints = {2, 200})
  void lookingAllocatesNothingPerPeer(int ranks) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    LocalRanks.run(
        ranks,
        sync -> {
          look(); // one-time allocations
          long before = threads.getCurrentThreadAllocatedBytes();
          look();
          long bytes = threads.getCurrentThreadAllocatedBytes() - before;
          assertTrue(bytes < 5_000, "bytes=" + bytes);
        });
  }

  private static void look() {
    try (ProbeChannel channel = new ProbeChannel(transport())) {
      channel.read((probe, from) -> {});
    }
  }

  private static Transport transport() {
    return LocalWorld.current().orElseThrow().transport();
  }
}

package org.gradientsync.core.diagnosis;

import java.util.function.BiConsumer;
import org.gradientsync.spi.Transport;

/** How the ranks of a job send each other probes. For one thread at a time. */
interface ProbeChannel extends AutoCloseable {
  /** The maximum number of probes that are read from a rank at a time. */
  int AT_A_TIME = 100;

  /** Uses queues in memory if the ranks are threads of one JVM, otherwise messages. */
  static ProbeChannel of(Transport transport) {
    return transport
        .common()
        .<ProbeChannel>map(common -> new ThreadProbes(common, transport.rank(), transport.size()))
        .orElseGet(() -> new MessageProbes(transport));
  }

  /**
   * Reads the probes that have arrived.
   *
   * @param receiver called with each probe, which is valid until it returns, and its sender
   */
  void read(BiConsumer<Probe, Integer> receiver);

  /**
   * Sends a probe; waits for no rank.
   *
   * @param probe not changed from now on
   */
  void send(Probe probe, int to);

  /** Discards what has arrived; reads nothing from now on. */
  @Override
  void close();
}

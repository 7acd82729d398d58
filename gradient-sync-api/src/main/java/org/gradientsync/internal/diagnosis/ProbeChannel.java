package org.gradientsync.internal.diagnosis;

import java.util.function.BiConsumer;
import org.gradientsync.spi.Transport;

/** How the ranks of a job send each other probes. One thread at a time uses it. */
interface ProbeChannel extends AutoCloseable {
  /** How many probes of a rank are taken at a time. */
  int AT_A_TIME = 100;

  /** By messages, or where the ranks are threads of one JVM, in their memory. */
  static ProbeChannel of(Transport transport) {
    return transport
        .common()
        .<ProbeChannel>map(common -> new ThreadProbes(common, transport.rank(), transport.size()))
        .orElseGet(() -> new MessageProbes(transport));
  }

  /**
   * Takes what has come.
   *
   * @param taker gets each probe, which holds until it returns, and the rank that has sent it
   */
  void read(BiConsumer<Probe, Integer> taker);

  /**
   * Sends; waits for nobody.
   *
   * @param probe not changed from now on
   */
  void send(Probe probe, int to);

  /** Takes what has come, and no more after that. */
  @Override
  void close();
}

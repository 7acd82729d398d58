package org.gradientsync.core.diagnosis;

import java.util.function.BiConsumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How the ranks of a job send each other probes. A rank posts a receive for the probes of all when
 * it first waits long. For one thread at a time.
 */
final class ProbeChannel implements AutoCloseable {
  /** The maximum number of probes that are read from a rank at a time. */
  private static final int AT_A_TIME = 100;

  private static final Logger log = LoggerFactory.getLogger(ProbeChannel.class);

  private final Transport transport;
  private final Probe incoming = Probe.of(Probe.Kind.READ);
  private Message receive; // null until a wait has become long
  private boolean failed;

  ProbeChannel(Transport transport) {
    this.transport = transport;
  }

  /**
   * Reads the probes that have arrived.
   *
   * @param receiver called with each probe, which is valid until it returns, and its sender
   */
  void read(BiConsumer<Probe, Integer> receiver) {
    try {
      for (int i = 0; i < AT_A_TIME * transport.size() && hasNext(); i++) {
        receiver.accept(incoming, incoming.sender());
        receive.start();
      }
    } catch (GradientSyncException e) {
      failed = true; // a rank may have died
      log.debug("rank {} cannot hear the others", transport.rank(), e);
    }
  }

  private boolean hasNext() {
    if (failed) {
      return false;
    }
    if (receive == null) {
      receive = transport.receiver(incoming.memory(), Transport.ANY_RANK, Channel.PROBE);
      receive.start();
    }
    return receive.test();
  }

  /**
   * Sends a probe; waits for no rank.
   *
   * @param probe not changed from now on
   */
  void send(Probe probe, int to) {
    probe.setSender(transport.rank());
    Message message = transport.sender(probe.memory(), to, Channel.PROBE);
    message.start();
    message.close();
  }

  /** Receives what has arrived, as MPI_Finalize requires. */
  @Override
  public void close() {
    try {
      for (int i = 0; i < AT_A_TIME * transport.size() && hasNext(); i++) {
        receive.start();
      }
      if (receive != null) {
        receive.close();
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot hear the others", transport.rank(), e);
    }
  }
}

package org.gradientsync.core.diagnosis;

import java.util.function.BiConsumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Probes by messages. A rank posts a receive for the probes of all when it first waits long. */
final class MessageProbes implements ProbeChannel {
  private static final Logger log = LoggerFactory.getLogger(MessageProbes.class);

  private final Transport transport;
  private final Probe incoming = Probe.of(Probe.Kind.READ);
  private Message receive; // null until a wait has become long
  private boolean failed;

  MessageProbes(Transport transport) {
    this.transport = transport;
  }

  @Override
  public void read(BiConsumer<Probe, Integer> receiver) {
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

  @Override
  public void send(Probe probe, int to) {
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

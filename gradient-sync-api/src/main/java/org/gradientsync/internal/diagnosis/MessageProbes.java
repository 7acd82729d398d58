package org.gradientsync.internal.diagnosis;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.function.BiConsumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Probes by messages. A rank posts a receive for each other rank when it first waits long. */
final class MessageProbes implements ProbeChannel {
  private static final Logger log = LoggerFactory.getLogger(MessageProbes.class);

  private final Transport transport;
  private final int rank;
  private final BitSet unreachable = new BitSet(); // ranks whose messages fail
  private final Message[] receives; // each null until a wait has become long
  private final Probe[] incoming;

  MessageProbes(Transport transport) {
    this.transport = transport;
    this.rank = transport.rank();
    this.receives = new Message[transport.size()];
    this.incoming = new Probe[receives.length];
  }

  @Override
  public void read(BiConsumer<Probe, Integer> receiver) {
    for (int peer = 0; peer < receives.length; peer++) {
      if (peer == rank || unreachable.get(peer)) {
        continue;
      }
      try {
        if (receives[peer] == null) {
          incoming[peer] = Probe.of(Probe.Kind.READ);
          receives[peer] = transport.receiver(incoming[peer].memory(), peer, Channel.PROBE);
          receives[peer].start();
        }
        for (int i = 0; i < AT_A_TIME && receives[peer].test(); i++) {
          receiver.accept(incoming[peer], peer);
          receives[peer].start();
        }
      } catch (GradientSyncException e) {
        unreachable.set(peer);
        log.debug("rank {} cannot hear rank {}", rank, peer, e); // it may have died
      }
    }
  }

  @Override
  public void send(Probe probe, int to) {
    Message message = transport.sender(probe.memory(), to, Channel.PROBE);
    message.start();
    message.close();
  }

  /** Receives what has arrived, as MPI_Finalize requires. */
  @Override
  public void close() {
    ByteBuffer ignored = Probe.of(Probe.Kind.READ).memory();
    for (int peer = 0; peer < receives.length; peer++) {
      end(peer, ignored);
    }
  }

  private void end(int peer, ByteBuffer memory) {
    try {
      if (peer != rank && !unreachable.get(peer)) {
        Message receive = receives[peer];
        if (receive == null) {
          receive = transport.receiver(memory, peer, Channel.PROBE);
          receive.start();
        }
        for (int i = 0; i < AT_A_TIME && receive.test(); i++) {
          receive.start();
        }
        receive.close();
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot hear rank {}", rank, peer, e);
    }
  }
}

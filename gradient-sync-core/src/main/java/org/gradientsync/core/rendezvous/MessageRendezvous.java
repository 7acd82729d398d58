package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * A rendezvous in which each rank sends a message to each other rank. Works with every transport.
 */
final class MessageRendezvous implements Rendezvous {
  private final int rank;
  private final ByteBuffer[] calls;
  private final Message[] sends;
  private final Message[] receives;
  private final int payloadBytes;
  private InlinePayload payload; // or null

  /**
   * @param payloadBytes the maximum payload of each message, the same on all ranks
   */
  MessageRendezvous(GroupTransport group, int channel, int payloadBytes) {
    this.payloadBytes = payloadBytes;
    rank = group.rank();
    int size = group.size();
    calls = new ByteBuffer[size];
    sends = new Message[size];
    receives = new Message[size];
    calls[rank] = HostBuffers.allocate(CallRecord.BYTES);
    int bytes = CallRecord.BYTES + payloadBytes;
    ByteBuffer memory = HostBuffers.allocate(size * bytes);
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        calls[peer] = memory.slice(peer * bytes, bytes).order(memory.order());
        sends[peer] = group.sender(calls[rank], peer, channel);
        receives[peer] = group.receiver(calls[peer], peer, channel);
      }
    }
  }

  @Override
  public ByteBuffer own(long sequence) {
    return calls[rank];
  }

  @Override
  public int payloadBytes() {
    return payloadBytes;
  }

  @Override
  public void load(InlinePayload newPayload) {
    payload = newPayload;
  }

  @Override
  public void arrive(long sequence) {
    for (int peer = 0; peer < calls.length; peer++) {
      if (peer != rank) {
        receives[peer].start();
        if (payload == null) {
          sends[peer].start();
        } else {
          payload.send(peer, calls[rank]);
        }
      }
    }
  }

  @Override
  public Message arrival(int peer) {
    return receives[peer];
  }

  @Override
  public Message sent(int peer) {
    return payload == null ? sends[peer] : payload.sent(peer);
  }

  @Override
  public ByteBuffer call(int peer) {
    return calls[peer];
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(receives), () -> Resources.closeAll(sends));
  }
}

package org.gradientsync.collective;

import java.nio.ByteBuffer;
import org.gradientsync.host.HostBuffers;
import org.gradientsync.spi.Message;

/** Meets by sending every other rank a message. Works wherever there is a transport. */
final class MessageMeeting implements Meeting {
  private final int rank;
  private final ByteBuffer[] calls;
  private final Message[] sends;
  private final Message[] receives;

  MessageMeeting(Group group, int channel) {
    rank = group.rank();
    int size = group.size();
    calls = new ByteBuffer[size];
    sends = new Message[size];
    receives = new Message[size];
    calls[rank] = HostBuffers.allocate(Call.BYTES);
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        calls[peer] = HostBuffers.allocate(Call.BYTES);
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
  public void come(long sequence) {
    for (int peer = 0; peer < calls.length; peer++) {
      if (peer != rank) {
        receives[peer].start();
        sends[peer].start();
      }
    }
  }

  @Override
  public Message arrival(int peer) {
    return receives[peer];
  }

  @Override
  public Message told(int peer) {
    return sends[peer];
  }

  @Override
  public ByteBuffer call(int peer) {
    return calls[peer];
  }

  @Override
  public void close() {
    for (int peer = 0; peer < calls.length; peer++) {
      if (peer != rank) {
        receives[peer].close();
        sends[peer].close();
      }
    }
  }
}

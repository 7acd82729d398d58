package org.gradientsync.core.collectives.messages;

import java.nio.Buffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.group.Exchange;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.HostCall;

/** Moves the elements of calls on Java buffers. The caller holds the group's lock. */
final class HostTransfers {
  private final Exchange exchange;
  private final int rank;
  private final int size;

  HostTransfers(ProcessGroup group, Exchange exchange) {
    this.exchange = exchange;
    rank = group.rank();
    size = group.size();
  }

  /** Moves the elements of a collective after its rendezvous. */
  void move(CollectiveCall call) {
    HostCall host = (HostCall) call;
    switch (call.kind()) {
      case BROADCAST -> passOn(host.hostIn(), call.root());
      case ALL_GATHER -> exchange.allGather(host.hostIn(), host.hostOut());
      case GATHER -> gather(host.hostIn(), host.hostOut(), call.root());
      case SCATTER -> scatter(host.hostIn(), host.hostOut(), call.root());
      case BARRIER -> {
        // the ranks have met
      }
      default -> throw new IllegalArgumentException("not a call on host memory: " + call);
    }
  }

  /** Receives data from one rank and sends it to others, along a binomial tree. */
  private void passOn(Buffer data, int root) {
    int behind = Math.floorMod(rank - root, size); // ranks behind the root
    int distance = Integer.lowestOneBit(behind);
    if (behind == 0) {
      distance = Integer.highestOneBit(size - 1) << 1;
    } else {
      int from = (rank - distance + size) % size;
      exchange.receive(data, data.position(), data.remaining(), from);
    }
    for (int step = distance >> 1; step > 0; step >>= 1) {
      if (behind + step < size) {
        exchange.send(data, data.position(), data.remaining(), (rank + step) % size);
      }
    }
  }

  private void gather(Buffer send, Buffer receive, int root) {
    int count = send.remaining();
    if (rank != root) {
      exchange.send(send, send.position(), count, root);
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      int to = receive.position() + peer * count;
      if (peer == root) {
        HostBuffers.copy(send, send.position(), receive, to, count);
      } else {
        exchange.receive(receive, to, count, peer);
      }
    }
  }

  private void scatter(Buffer send, Buffer receive, int root) {
    int count = receive.remaining();
    if (rank != root) {
      exchange.receive(receive, receive.position(), count, root);
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      int from = send.position() + peer * count;
      if (peer == root) {
        HostBuffers.copy(send, from, receive, receive.position(), count);
      } else {
        exchange.send(send, from, count, peer);
      }
    }
  }
}

package org.gradientsync.core.collectives.messages;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.group.Exchange.Part;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.CallTable;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;

/**
 * The communicator's messages between two ranks. Sender and receiver exchange their calls, and then
 * their verdicts on all calls that they have received. Elements move between two ranks only if both
 * verdicts are positive, so no message is left pending.
 */
final class PairedMessages {
  private final ProcessGroup group;
  private final Side sending = new Side(Kind.SEND);
  private final Side receiving = new Side(Kind.RECEIVE);

  PairedMessages(ProcessGroup group) {
    this.group = group;
  }

  /**
   * Sends, receives, or does both at the same time.
   *
   * @param send its remaining elements are sent; null to send nothing, to {@code NO_RANK}
   * @param receive gets as many elements as it has remaining; null to receive nothing
   * @throws MismatchedCallException if the calls of two of the ranks do not match
   */
  void move(Buffer send, int destination, Buffer receive, int source, int tag) {
    synchronized (group) {
      Buffer main = send != null ? send : receive;
      Kind kind = send != null ? Kind.SEND : Kind.RECEIVE;
      group
          .matcher()
          .beginPair(kind, CallRecord.element(main), main.remaining(), destination, source, tag);
      MismatchedCallException failure;
      try {
        sending.open(send, destination, tag);
        receiving.open(receive, source, tag);
        failure = compare();
        group
            .exchange()
            .move(
                new Part(send, sending.position(), sending.count(), destination),
                new Part(receive, receiving.position(), receiving.count(), source),
                Channel.sending(tag));
      } finally {
        sending.close();
        receiving.close();
      }
      group.finished();
      if (failure != null) {
        throw failure;
      }
    }
  }

  /** Exchanges calls and verdicts. Returns null if all calls match. */
  private MismatchedCallException compare() {
    exchange();
    Side different = !sending.isSame() ? sending : !receiving.isSame() ? receiving : null;
    sending.writeVerdict(different == null);
    receiving.writeVerdict(different == null);
    exchange();
    group.arrivals().endRounds();
    if (different != null) {
      return different.mismatch();
    }
    Side refused = !sending.fits() ? sending : !receiving.fits() ? receiving : null;
    return refused == null ? null : refused.mismatchWithThirdRank();
  }

  private void exchange() {
    group.arrivals().nextRound();
    sending.start();
    receiving.start();
    sending.await();
    receiving.await();
  }

  /** What is sent to one rank, or received from one; or nothing. */
  private final class Side {
    private final Kind kind;
    private final ByteBuffer own = HostBuffers.allocate(CallRecord.BYTES); // a call, then a verdict
    private final ByteBuffer other = HostBuffers.allocate(CallRecord.BYTES);
    private Buffer data; // or null
    private int peer;
    private Message in; // or null
    private Message out; // or null

    Side(Kind kind) {
      this.kind = kind;
    }

    void open(Buffer newData, int newPeer, int tag) {
      data = newData;
      peer = newPeer;
      if (data == null) {
        return;
      }
      int toReceiver = Channel.sending(tag);
      int toSender = Channel.receiving(tag);
      CallRecord.write(
          own, 0, Origin.COMMUNICATOR, kind, CallRecord.element(data), data.remaining(), null, tag);
      in = group.messages().receiver(other, peer, kind == Kind.SEND ? toSender : toReceiver);
      out = group.messages().sender(own, peer, kind == Kind.SEND ? toReceiver : toSender);
    }

    void start() {
      if (data != null) {
        in.start();
        out.start();
      }
    }

    void await() {
      if (data != null) {
        group.matcher().awaitPair(in, peer, kind == Kind.SEND);
        group.matcher().awaitPair(out, peer, kind == Kind.SEND);
      }
    }

    boolean isSame() {
      return data == null || CallRecord.samePair(own, other);
    }

    void writeVerdict(boolean fits) {
      CallRecord.writeVerdict(own, fits);
    }

    /** Whether the other rank's verdict is positive. */
    boolean fits() {
      return data == null || CallRecord.verdict(other);
    }

    int position() {
      return data == null ? 0 : data.position();
    }

    /** The number of elements to move after the verdicts. */
    int count() {
      return data != null && CallRecord.verdict(own) && CallRecord.verdict(other)
          ? data.remaining()
          : 0;
    }

    MismatchedCallException mismatch() {
      return new MismatchedCallException(CallTable.ofPair(group.rank(), own, peer, other));
    }

    MismatchedCallException mismatchWithThirdRank() {
      return new MismatchedCallException(
          "the ranks' calls do not match, rank="
              + group.rank()
              + ": rank "
              + peer
              + " and a third rank do not match, so nothing was exchanged with rank "
              + peer);
    }

    void close() {
      data = null;
      if (in != null) {
        in.close();
        in = null;
      }
      if (out != null) {
        out.close();
        out = null;
      }
    }
  }
}

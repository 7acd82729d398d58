package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * Direct messages between ranks of different nodes in a call that is late: that the sender has
 * arrived. Without them, a rank that waits for another node's calls would not know which of its
 * ranks are missing.
 *
 * <p>A receiver acknowledges what it reads. Each rank has at most one unread notice to each other
 * rank, so a rank that is often late and never waits does not accumulate them.
 */
final class ArrivalNotices implements AutoCloseable {
  private static final int ID = 0;
  private static final int ARRIVED = 8; // a call, or 0
  private static final int READ = 16; // 1 if the receiver's last notice was read
  private static final int BYTES = 24;

  private final GroupTransport group;
  private final long id;
  private final IntPredicate unreachable;
  private final Peer[] peers; // null for ranks of this node

  /** The notices to and from another rank. */
  private final class Peer implements AutoCloseable {
    private final int rank;
    private final ByteBuffer in = HostBuffers.allocate(BYTES);
    private final ByteBuffer out = HostBuffers.allocate(BYTES);
    private final Message receive;
    private final Message send;
    private long heard; // the newest call that it has reached
    private long told; // the newest call that it was told of
    private boolean unread; // it has not acknowledged the last notice
    private boolean owes; // this rank has not acknowledged its last notice
    private boolean failed;

    Peer(int rank) {
      this.rank = rank;
      receive = group.receiver(in, rank, Channel.ARRIVALS);
      send = group.sender(out, rank, Channel.ARRIVALS);
      receive.start();
    }

    void exchange(long sequence, boolean tells) {
      try {
        while (!failed && receive.test()) {
          read();
          receive.start();
        }
        boolean news = tells && !unread && told < sequence;
        if ((news || owes) && !failed && send.test() && !unreachable.test(rank)) {
          write(news ? sequence : 0);
        }
      } catch (GradientSyncException e) {
        failed = true; // the wait for its call says so
      }
    }

    private void read() {
      if (in.getLong(ID) != id) { // of an earlier owner of these tags
        return;
      }
      heard = Math.max(heard, in.getLong(ARRIVED));
      owes |= in.getLong(ARRIVED) != 0;
      unread &= in.getLong(READ) == 0;
    }

    private void write(long sequence) {
      out.putLong(ID, id);
      out.putLong(ARRIVED, sequence);
      out.putLong(READ, owes ? 1 : 0);
      unread |= sequence != 0;
      told = Math.max(told, sequence);
      owes = false;
      send.start();
    }

    @Override
    public void close() {
      Resources.closeAll(receive, send);
    }
  }

  /**
   * @param id the same on all ranks; distinguishes this group from earlier owners of its tags
   * @param meets the ranks to exchange notices with
   * @param unreachable the ranks that must be sent nothing
   */
  ArrivalNotices(GroupTransport group, long id, IntPredicate meets, IntPredicate unreachable) {
    this.group = group;
    this.id = id;
    this.unreachable = unreachable;
    peers = new Peer[group.size()];
    for (int peer = 0; peer < peers.length; peer++) {
      peers[peer] = meets.test(peer) ? new Peer(peer) : null;
    }
  }

  /**
   * Reads what has come.
   *
   * @param sequence the call in which this rank waits
   * @param tells whether to tell the others, each once
   */
  void exchange(long sequence, boolean tells) {
    for (Peer peer : peers) {
      if (peer != null) {
        peer.exchange(sequence, tells);
      }
    }
  }

  /** Whether a rank has told that it has reached a call. */
  boolean hasArrived(int peer, long sequence) {
    return peers[peer] != null && peers[peer].heard >= sequence;
  }

  /** Whether any rank has told that it has reached a call. */
  boolean anyHasArrived(long sequence) {
    for (Peer peer : peers) {
      if (peer != null && peer.heard >= sequence) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() {
    Resources.closeAll(peers);
  }
}

package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.BitSet;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.Mailbox;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * Messages between ranks that wait in a call that is late: which ranks have arrived, as far as the
 * sender knows.
 *
 * <p>A rank sends what it knows to its {@linkplain RankMap#neighbours neighbours}, and again when
 * it knows more. Neighbours that are missing pass nothing on. So a rank also looks for the next
 * rank in rank order that has arrived, among more and more ranks: then all ranks that have arrived
 * know of each other.
 *
 * <p>A receiver acknowledges what it reads. Each rank has at most one unread notice to each other
 * rank, so a rank that is often late and never waits does not accumulate them.
 */
public final class ArrivalNotices implements AutoCloseable {
  private static final int HEADER = 3 * Long.BYTES; // of a notice, before a bit for each rank
  private static final long WIDEN_NANOS = Duration.ofMillis(50).toNanos();

  private final GroupTransport group;
  private final Liveness liveness;
  private final boolean allAreNeighbours;
  private final Peer[] peers; // each null until a message to it is due
  private final Mailbox mailbox; // not open until a call is late
  private final BitSet arrived = new BitSet(); // at the call
  private long call; // the newest that this rank knows of
  private int reach = 1; // the ranks that follow this one and are told of the call
  private long widened;

  /** What this rank and another one have told each other. */
  private final class Peer implements AutoCloseable {
    private final int rank;
    private final boolean isNeighbour;
    private final ByteBuffer out = HostBuffers.allocate(bytes());
    private final Message send; // used again and again, because busy ranks are often late
    private final BitSet known = new BitSet(); // to it, of the call
    private long heard; // the newest call that it has told of
    private boolean unread; // it has not acknowledged the last notice
    private boolean owes; // this rank has not acknowledged its last notice
    private boolean lost;

    Peer(int rank, boolean isNeighbour) {
      this.rank = rank;
      this.isNeighbour = isNeighbour;
      send = group.sender(out, rank, Channel.ARRIVALS);
    }

    void update(boolean tells) {
      boolean hasNews =
          allAreNeighbours
              ? !known.get(group.rank()) // each rank speaks for itself
              : known.cardinality() < arrived.cardinality();
      boolean mayBeTold = isNeighbour || heard == call || distanceTo(rank) <= reach;
      boolean news = tells && !unread && hasNews && mayBeTold;
      try {
        if ((news || owes) && !lost && send.test() && !liveness.isUnreachable(rank)) {
          write(news);
          send.start();
        }
      } catch (GradientSyncException e) {
        lost = true; // the wait for its call says so
      }
    }

    /** Without news it only says that the receiver's last notice was read. */
    private void write(boolean news) {
      out.clear().putLong(group.key().id()).putInt(group.rank()).putInt(owes ? 1 : 0);
      out.putLong(news ? call : 0);
      if (news) {
        HostBuffers.fillZero(out, HEADER, bytes() - HEADER);
        out.put(arrived.toByteArray());
        known.or(arrived);
        unread = true;
      }
      out.clear();
      owes = false;
    }

    @Override
    public void close() {
      send.close();
    }
  }

  ArrivalNotices(GroupTransport group, Liveness liveness) {
    this.group = group;
    this.liveness = liveness;
    allAreNeighbours = group.ranks().areAllNeighbours();
    peers = new Peer[group.size()];
    mailbox = new Mailbox(group, Channel.ARRIVALS, bytes());
  }

  private int bytes() {
    return HEADER + (group.size() + Byte.SIZE - 1) / Byte.SIZE;
  }

  /**
   * Sends what is new, and reads what has come. Does nothing before a call is late.
   *
   * @param sequence the call in which this rank waits
   * @param near the ranks that see each other arrive
   * @param come those of them that have arrived
   * @param tells whether to tell the others, unless one of them has told of the call
   */
  void exchange(long sequence, IntPredicate near, IntPredicate come, boolean tells) {
    if (!mailbox.isOpen()) {
      if (!tells) {
        return;
      }
      for (int peer : group.ranks().neighbours()) {
        peers[peer] = new Peer(peer, true);
      }
    }
    begin(sequence);
    read();
    boolean told = tells;
    for (Peer peer : peers) {
      told |= peer != null && peer.heard >= sequence;
    }
    told &= call == sequence;
    if (told) {
      arrived.set(group.rank());
      for (int peer = 0; peer < peers.length; peer++) {
        if (come.test(peer) || liveness.departures().hasFinished(peer, sequence)) {
          arrived.set(peer);
        }
      }
      widen();
    }
    for (Peer peer : peers) {
      if (peer != null) {
        boolean sees = allAreNeighbours && near.test(peer.rank);
        peer.update(told && !sees);
      }
    }
  }

  private void begin(long sequence) {
    if (sequence <= call) {
      return;
    }
    call = sequence;
    reach = 1;
    widened = System.nanoTime();
    arrived.clear();
    for (Peer peer : peers) {
      if (peer != null) {
        peer.known.clear();
      }
    }
  }

  private void read() {
    try {
      for (ByteBuffer next = mailbox.next(); next != null; next = mailbox.next()) {
        ByteBuffer in = next.duplicate().order(next.order());
        boolean valid = in.getLong() == group.key().id(); // not of an earlier owner
        int sender = in.getInt();
        if (valid && sender >= 0 && sender < peers.length && sender != group.rank()) {
          take(in, peer(sender));
        }
      }
    } catch (GradientSyncException e) {
      // the wait for a call says so
    }
  }

  private void take(ByteBuffer notice, Peer peer) {
    peer.unread &= notice.getInt() == 0;
    long told = notice.getLong();
    peer.owes |= told != 0;
    begin(told);
    if (told == call) {
      peer.heard = told;
      BitSet theirs = BitSet.valueOf(notice);
      peer.known.or(theirs);
      arrived.or(theirs);
    }
  }

  private Peer peer(int rank) {
    if (peers[rank] == null) {
      peers[rank] = new Peer(rank, false);
    }
    return peers[rank];
  }

  private int distanceTo(int rank) {
    return Math.floorMod(rank - group.rank(), peers.length);
  }

  /** Looks for the next rank that has arrived among twice as many ranks. */
  private void widen() {
    if (reach >= peers.length - 1
        || System.nanoTime() - widened < WIDEN_NANOS
        || arrived.stream().map(this::distanceTo).anyMatch(near -> near > 0 && near <= reach)) {
      return;
    }
    reach = Math.min(2 * reach, peers.length - 1);
    for (int distance = 1; distance <= reach; distance++) {
      peer((group.rank() + distance) % peers.length);
    }
    widened = System.nanoTime();
  }

  /** Whether a rank is known to have reached a call. */
  boolean hasArrived(int peer, long sequence) {
    return call > sequence || call == sequence && arrived.get(peer);
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(peers), mailbox);
  }
}

package org.gradientsync.core.collectives.shared;

import java.util.List;
import org.gradientsync.RankLostException;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.Message;

/** The ranks of this node, which read each other's buffers during a call. */
public final class NodeRanks {
  private final ProcessGroup group;
  private final int[] ranks;
  private final int own;
  private final SharedMemoryRendezvous rendezvous;
  private final NodeMemory node;
  private final Awaited awaited = new Awaited();

  /**
   * @param ranks the ranks of the node in ascending order
   * @param rendezvous numbers them from 0 on
   */
  public NodeRanks(
      ProcessGroup group, List<Integer> ranks, SharedMemoryRendezvous rendezvous, NodeMemory node) {
    this.group = group;
    this.ranks = ranks.stream().mapToInt(Integer::intValue).toArray();
    this.own = ranks.indexOf(group.rank());
    this.rendezvous = rendezvous;
    this.node = node;
  }

  /** Waits until no rank reads another one's memory any more. */
  public void finishReading() {
    rendezvous.set(SharedMemoryRendezvous.DONE);
    for (int local = 0; local < ranks.length; local++) {
      while (local != own && isReading(local)) {
        awaited.reader = local;
        awaited.rank = toWaitFor(local);
        group.await(awaited, awaited.rank);
      }
    }
    requireNoneGaveUp(null); // such a rank may have changed its buffer while this one read it
  }

  private boolean isReading(int local) {
    return !rendezvous.expect(local, SharedMemoryRendezvous.DONE).test();
  }

  /**
   * The rank to wait for if this one waits for a local rank: that one, or the rank of another node
   * for which it waits itself.
   */
  public int toWaitFor(int local) {
    int further = rendezvous.waitsFor(local);
    return further == RankMap.NO_RANK || further == group.rank() ? ranks[local] : further;
  }

  /** Finishes when a rank has read, or waits for another rank. */
  private final class Awaited implements Message {
    private int reader;
    private int rank;

    @Override
    public boolean test() {
      return !isReading(reader) || toWaitFor(reader) != rank;
    }
  }

  /** Throws if a rank gave up in this call, so that what was read from its memory is void. */
  public void requireNoneGaveUp(Throwable cause) {
    for (int local = 0; local < ranks.length; local++) {
      if (local != own && rendezvous.gaveUp(local)) {
        throw group.lost(ranks[local], cause);
      }
    }
  }

  /**
   * Names the rank that is the cause of a failure in the middle of a call. The failure may be an
   * InternalError, which the JVM throws for access to a mapping of a truncated file.
   *
   * @param buffer this rank's
   */
  public RuntimeException failed(HostBuffer buffer, Throwable e) {
    requireNoneGaveUp(e); // its memory may be gone
    requireNoneClosed(buffer, e);
    return group.failed(e);
  }

  /** A rank's file is gone: the rank has left or died, or its program has closed the buffer. */
  private RankLostException gone(int rank, String buffer, Throwable cause) {
    group.whyGivenUp(rank); // waits a moment for its notice
    if (!group.whyLeft(rank).isEmpty()) {
      return group.lost(rank, cause);
    }
    if (!group.isAlive(rank)) {
      return group.broken(group.name(rank) + " has died", null);
    }
    return group.broken(
        group.name(rank) + " closed its buffer during the call: buffer=" + buffer,
        new IllegalStateException("buffer is closed: buffer=" + buffer, cause));
  }

  /** Names the rank that has closed its buffer during the call. */
  private void requireNoneClosed(HostBuffer buffer, Throwable cause) {
    String name = buffer.describe(); // the same on all ranks
    if (buffer.isClosed()) {
      throw group.broken("this rank closed its buffer during the call: buffer=" + name, cause);
    }
    for (int local = 0; local < ranks.length; local++) {
      long id = CallRecord.memoryId(rendezvous.call(local));
      if (local != own && id >= 0 && !SharedFiles.isThere(node.owner(local), id)) {
        throw gone(ranks[local], name, cause);
      }
    }
  }
}

package org.gradientsync.core.ranks;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.spi.Transport;

/** The ranks of a group, of which this is one: their world ranks, their nodes and their names. */
public record RankMap(Transport transport, int[] worldRanks, int rank) {
  /** Stands for no rank. */
  public static final int NO_RANK = -1;

  private static final int MAX_NAMED = 4;
  private static final int MAX_LISTED = 16;

  public int size() {
    return worldRanks.length;
  }

  public int worldRank(int peer) {
    return worldRanks[peer];
  }

  /** The rank in the group of a world rank, or {@link #NO_RANK}. */
  public int find(int worldRank) {
    return all().stream().filter(peer -> worldRanks[peer] == worldRank).findFirst().orElse(NO_RANK);
  }

  /** All ranks in ascending order. */
  public List<Integer> all() {
    return IntStream.range(0, worldRanks.length).boxed().toList();
  }

  public List<Integer> onNode(int node) {
    return all().stream().filter(peer -> nodeOf(peer) == node).toList();
  }

  public int nodeOf(int peer) {
    return transport.nodeOf(worldRanks[peer]);
  }

  public boolean isNear(int peer) {
    return nodeOf(peer) == nodeOf(rank);
  }

  /** The place of a rank, for example {@code host=node7, process=4711}, or an empty text. */
  public String placeOf(int peer) {
    return transport.placeOf(worldRanks[peer]);
  }

  public String name(int peer) {
    String place = placeOf(peer);
    return "rank " + peer + (place.isEmpty() ? "" : " (" + place + ")");
  }

  public String names(List<Integer> peers) {
    if (peers.size() > MAX_LISTED) {
      return RankRanges.of(peers);
    }
    return peers.size() > MAX_NAMED
        ? "ranks " + peers
        : peers.stream().map(this::name).collect(Collectors.joining(" and "));
  }

  /** The name of a world rank, whether it is in the group or not. */
  public String nameInJob(int worldRank) {
    int peer = find(worldRank);
    return peer == NO_RANK ? "rank " + worldRank + " of the job" : name(peer);
  }

  /** Throws an IllegalArgumentException if there is no such rank; the role names the argument. */
  public void require(int peer, String role) {
    if (peer < 0 || peer >= worldRanks.length) {
      throw new IllegalArgumentException(
          "no such rank: " + role + "=" + peer + ", size=" + worldRanks.length + ", rank=" + rank);
    }
  }

  /** As above, for the other rank of a message. */
  public void requireOther(int peer, String role) {
    require(peer, role);
    if (peer == rank) {
      throw new IllegalArgumentException("a rank cannot send to itself: " + role + "=" + peer);
    }
  }
}

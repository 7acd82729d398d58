package org.gradientsync.core.ranks;

import java.util.List;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.spi.Transport;

/** The ranks of a group, of which this is one: their world ranks, their nodes and their names. */
public record RankMap(Transport transport, int[] worldRanks, int rank) {
  public static final int NO_RANK = -1;
  private static final int MAX_NEIGHBOURS = 16; // of every rank
  private static final int MAX_NAMED = 4;
  private static final int MAX_LISTED = 16;
  private static final int MAX_RANGES = 8;

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

  /**
   * The ranks to which this one sends notices, in ascending order, and with which it meets before
   * the group's rendezvous is chosen. In a small group they are all others; in a large one, those
   * whose distance is a power of two, so that connections and messages grow with the logarithm of
   * the ranks. Ranks are neighbours of their neighbours.
   */
  public int[] neighbours() {
    return IntStream.range(1, size())
        .filter(distance -> areAllNeighbours() || Integer.bitCount(distance) == 1)
        .flatMap(distance -> IntStream.of(rank + distance, rank - distance + size()))
        .map(peer -> peer % size())
        .distinct()
        .sorted()
        .toArray();
  }

  public boolean areAllNeighbours() {
    return size() <= MAX_NEIGHBOURS;
  }

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
      return ranges(peers);
    }
    return peers.size() > MAX_NAMED
        ? "ranks " + peers
        : peers.stream().map(this::name).collect(Collectors.joining(" and "));
  }

  /** Names one or more ranks in ascending order in a text that stays short: ranks 0-76, 78-255. */
  public static String ranges(List<Integer> ranks) {
    StringJoiner ranges = new StringJoiner(", ");
    int shown = 0;
    int from = 0;
    while (from < ranks.size() && shown < MAX_RANGES) {
      int to = from;
      while (to + 1 < ranks.size() && ranks.get(to + 1) == ranks.get(to) + 1) {
        to++;
      }
      ranges.add(to == from ? ranks.get(from).toString() : ranks.get(from) + "-" + ranks.get(to));
      from = to + 1;
      shown++;
    }
    String more = from < ranks.size() ? " and " + (ranks.size() - from) + " more" : "";
    return (ranks.size() == 1 ? "rank " : "ranks ") + ranges + more;
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

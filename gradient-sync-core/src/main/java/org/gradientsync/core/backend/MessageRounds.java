package org.gradientsync.core.backend;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.gradientsync.spi.CollectiveCall;

/**
 * Divides messages into rounds that have at most one message to and one from each rank. The k-th
 * message between two ranks in one direction is in round k on both of them, so ranks that list
 * their messages in different orders never wait in a circle: a rank that waits in round k waits
 * only for ranks that are in round k or before.
 */
public final class MessageRounds {
  private MessageRounds() {}

  /**
   * The rounds, each in the order of the list.
   *
   * @param messages the sends and receives of this rank
   * @return one list per round
   */
  public static List<List<CollectiveCall>> of(List<CollectiveCall> messages) {
    List<List<CollectiveCall>> rounds = new ArrayList<>();
    for (CollectiveCall message : messages) {
      int round = 0;
      while (round < rounds.size() && hasSame(rounds.get(round), message)) {
        round++;
      }
      if (round == rounds.size()) {
        rounds.add(new ArrayList<>());
      }
      rounds.get(round).add(message);
    }
    return rounds;
  }

  /**
   * The messages in an order that is the same for the two ranks of each message, and part of one
   * order of all messages. Ranks that exchange their messages one by one in it never wait in a
   * circle: of all messages that are left, the first one is the next for both of its ranks.
   *
   * @param messages the sends and receives of this rank
   * @param rank this rank
   * @return all of them
   */
  public static List<CollectiveCall> inOneOrder(List<CollectiveCall> messages, int rank) {
    List<CollectiveCall> ordered = new ArrayList<>();
    for (List<CollectiveCall> round : of(messages)) {
      round.stream()
          .sorted(
              Comparator.comparingInt((CollectiveCall message) -> Math.min(rank, message.peer()))
                  .thenComparingInt(message -> Math.max(rank, message.peer()))
                  .thenComparing(message -> message.sends() != rank < message.peer()))
          .forEach(ordered::add);
    }
    return ordered;
  }

  private static boolean hasSame(List<CollectiveCall> round, CollectiveCall message) {
    return round.stream()
        .anyMatch(other -> other.peer() == message.peer() && other.sends() == message.sends());
  }
}

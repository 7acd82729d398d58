package org.gradientsync.core.backend;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.spi.CollectiveCall;

/**
 * Divides messages into rounds that have at most one message to and one from each rank. The k-th
 * message between two ranks in one direction is in round k on both of them, so ranks that list
 * their messages in different orders never wait in a circle: a rank that waits in round k waits
 * only for ranks that are in round k or before.
 */
public final class MessageRounds {
  private MessageRounds() {}

  /** All rounds. */
  static List<List<CollectiveCall>> of(List<CollectiveCall> messages) {
    List<List<CollectiveCall>> rounds = new ArrayList<>();
    int left = messages.size();
    while (left > 0) {
      List<CollectiveCall> round = new ArrayList<>();
      fill(round, messages, rounds.size());
      rounds.add(round);
      left -= round.size();
    }
    return rounds;
  }

  /**
   * Fills a list with the messages of a round, in their order. Allocates nothing if the list has
   * room.
   *
   * @param round is cleared first
   * @param messages the sends and receives of this rank
   * @param number of the round, from 0
   */
  public static void fill(List<CollectiveCall> round, List<CollectiveCall> messages, int number) {
    round.clear();
    for (int i = 0; i < messages.size(); i++) {
      if (sameBefore(messages, i) == number) {
        round.add(messages.get(i));
      }
    }
  }

  /**
   * {@return this rank's sends and receives in an order that is the same for the two ranks of each
   * message, and part of one order of all messages} Ranks that exchange their messages one by one
   * in it never wait in a circle: of all messages that are left, the first one is the next for both
   * of its ranks.
   */
  static List<CollectiveCall> inOneOrder(List<CollectiveCall> messages, int rank) {
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

  /**
   * Exchanges messages one by one, {@linkplain #inOneOrder in an order} in which no ranks wait in a
   * circle. After a mismatch the others are exchanged all the same, as their ranks wait for them.
   *
   * @param messages the sends and receives of this rank
   * @param rank this rank
   * @param exchange exchanges one of them
   * @throws MismatchedCallException the first one
   */
  public static void oneByOne(
      List<CollectiveCall> messages, int rank, Consumer<CollectiveCall> exchange) {
    MismatchedCallException mismatch = null;
    for (CollectiveCall message : inOneOrder(messages, rank)) {
      try {
        exchange.accept(message);
      } catch (MismatchedCallException e) {
        mismatch = mismatch == null ? e : mismatch;
      }
    }
    if (mismatch != null) {
      throw mismatch;
    }
  }

  /** The number of messages before one that go to or come from the same rank. */
  private static int sameBefore(List<CollectiveCall> messages, int index) {
    CollectiveCall message = messages.get(index);
    int same = 0;
    for (int i = 0; i < index; i++) {
      CollectiveCall other = messages.get(i);
      same += other.peer() == message.peer() && other.sends() == message.sends() ? 1 : 0;
    }
    return same;
  }
}

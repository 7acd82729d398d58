package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;

class MessageRoundsTest {
  private static CollectiveCall to(int peer) {
    return CollectiveCall.send(null, peer);
  }

  private static CollectiveCall from(int peer) {
    return CollectiveCall.receive(null, peer);
  }

  @Test
  void eachRoundHasOneMessageForEachRankAndDirection() {
    List<CollectiveCall> messages = List.of(to(1), to(1), from(1), to(2), to(1), from(1));
    assertEquals(
        List.of(List.of(to(1), from(1), to(2)), List.of(to(1), from(1)), List.of(to(1))),
        MessageRounds.of(messages));
  }

  /** Plays ranks that exchange random messages one by one, each with another list. */
  @Test
  void inOneOrderNobodyWaitsInACircle() {
    Random random = new Random(1);
    for (int game = 0; game < 200; game++) {
      int ranks = 2 + random.nextInt(6);
      List<List<CollectiveCall>> lists = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        lists.add(new ArrayList<>());
      }
      for (int i = 0; i < 40; i++) {
        int sender = random.nextInt(ranks);
        int receiver = (sender + 1 + random.nextInt(ranks - 1)) % ranks;
        lists.get(sender).add(to(receiver));
        lists.get(receiver).add(from(sender));
      }
      List<Deque<CollectiveCall>> left = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        Collections.shuffle(lists.get(rank), random);
        left.add(new ArrayDeque<>(MessageRounds.inOneOrder(lists.get(rank), rank)));
      }
      while (left.stream().anyMatch(list -> !list.isEmpty())) {
        assertTrue(anyPairMeets(left), "ranks wait in a circle, game=" + game);
      }
    }
  }

  /** Removes a message that is the next one for both of its ranks. */
  private static boolean anyPairMeets(List<Deque<CollectiveCall>> left) {
    for (int rank = 0; rank < left.size(); rank++) {
      CollectiveCall next = left.get(rank).peek();
      if (next != null) {
        CollectiveCall other = left.get(next.peer()).peek();
        if (other != null && other.peer() == rank && other.sends() != next.sends()) {
          left.get(rank).remove();
          left.get(next.peer()).remove();
          return true;
        }
      }
    }
    return false;
  }
}

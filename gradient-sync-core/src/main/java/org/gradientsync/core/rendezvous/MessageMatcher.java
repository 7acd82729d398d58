package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.backend.MessageRounds;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.HostCall;

/**
 * Brings two ranks together for a message. Sender and receiver exchange their calls, so both know
 * whether type, count and tag match before any element moves. The caller holds the group's lock.
 */
public final class MessageMatcher {
  private final MatchingGroup group;
  private final Calls calls;
  private final Arrivals arrivals;
  private final List<CollectiveCall> single = new ArrayList<>();
  private final List<Link> links = new ArrayList<>(); // of the round that meets
  private final Deque<List<CollectiveCall>> spare = new ArrayDeque<>(); // one for each depth

  public MessageMatcher(MatchingGroup group) {
    this.group = group;
    calls = group.parts().calls();
    arrivals = group.parts().arrivals();
  }

  public void meet(Origin origin, CollectiveCall message) {
    single.clear();
    single.add(message);
    MismatchedCallException mismatch = meet(origin, single);
    single.clear();
    if (mismatch != null) {
      calls.finished();
      throw mismatch;
    }
  }

  /** Exchanges messages round by round. The body moves those that match; it may exchange others. */
  public void exchange(
      Origin origin, List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body) {
    MismatchedCallException failure = null;
    List<CollectiveCall> round = spare.isEmpty() ? new ArrayList<>() : spare.pop();
    try {
      int left = messages.size();
      for (int number = 0; left > 0; number++) {
        MessageRounds.fill(round, messages, number);
        left -= round.size();
        MismatchedCallException mismatch = meet(origin, round);
        failure = failure == null ? mismatch : failure;
        group.runMet(round, body);
      }
    } finally {
      spare.push(round);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Meets the other ranks of messages, and removes those that do not match. */
  private MismatchedCallException meet(Origin origin, List<CollectiveCall> round) {
    group.requireUsable();
    arrivals.beginPairs();
    links.clear();
    try {
      for (int i = 0; i < round.size(); i++) {
        CollectiveCall message = round.get(i);
        ByteBuffer call = calls.record(origin, message);
        links.add(arrivals.begin(message.peer(), message.sends(), call));
      }
      exchangeCalls(false);
      for (int i = 0; i < links.size(); i++) {
        links.get(i).advance();
      }
      if (round.get(0) instanceof HostCall) {
        exchangeCalls(true); // so that none returns before the ranks have met those of all messages
      }
    } catch (RuntimeException | Error e) {
      throw group.failed(e);
    }
    MismatchedCallException first = null;
    for (int i = links.size() - 1; i >= 0; i--) {
      Link link = links.get(i);
      if (!link.matches()) {
        round.remove(i);
        first =
            new MismatchedCallException(
                CallTable.ofPair(group.rank(), link.own(), link.peer(), link.other()));
      }
    }
    return first;
  }

  /** Exchanges the calls of all links; again only those of one origin, as the other ranks do. */
  private void exchangeCalls(boolean again) {
    for (int i = 0; i < links.size(); i++) {
      Link link = links.get(i);
      if (!again || link.isOfOneOrigin()) {
        link.receive().start();
        link.send().start();
      }
    }
    for (int i = 0; i < links.size(); i++) {
      Link link = links.get(i);
      if (again && !link.isOfOneOrigin()) {
        continue;
      }
      calls.show(link.own());
      WaitPhase phase = link.sends() ? WaitPhase.SEND : WaitPhase.RECEIVE;
      long number = link.stages().getPlain();
      group.await(link.receive(), link.peer(), phase, number);
      group.await(link.send(), link.peer(), phase, number);
    }
  }
}

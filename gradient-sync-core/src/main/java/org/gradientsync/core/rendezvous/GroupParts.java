package org.gradientsync.core.rendezvous;

import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;

/**
 * The parts of a group on which its matchers and waits work, and which the deadlock detector and
 * the reports see. Any thread may read it.
 */
public record GroupParts(
    GroupTransport messages, Liveness liveness, Calls calls, Arrivals arrivals) {
  public GroupKey key() {
    return messages.key();
  }

  public RankMap ranks() {
    return messages.ranks();
  }

  public int rank() {
    return messages.rank();
  }

  public int size() {
    return messages.size();
  }

  /** The current call, for the end of an error message. */
  public String during() {
    return "in=%s of communicator %s with %s ranks"
        .formatted(calls.current(), key().context(), size());
  }
}

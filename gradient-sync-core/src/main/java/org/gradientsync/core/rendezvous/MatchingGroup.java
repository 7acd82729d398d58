package org.gradientsync.core.rendezvous;

import java.util.function.Consumer;
import org.gradientsync.RankLostException;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;

/**
 * A group as its matchers see it: they wait for its ranks, and break it if calls differ too late.
 */
public interface MatchingGroup extends RankGroup {
  GroupParts parts();

  /** Whether a message has finished. Breaks the group if it never will. */
  boolean test(Message message, int peer);

  /** Waits until a rank reaches a phase: of the collective, or the stage of a {@link Link}. */
  void await(Message message, int peer, WaitPhase phase, long number);

  /** Breaks the group, because a rank has left or given up in the middle of a call; says why. */
  RankLostException lost(int peer, Throwable cause);

  /** Runs the part of a call after the rendezvous; what it throws breaks the group. */
  <C> void runMet(C call, Consumer<C> body);
}

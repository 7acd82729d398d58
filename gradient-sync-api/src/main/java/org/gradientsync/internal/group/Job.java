package org.gradientsync.internal.group;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.diagnosis.Bells;
import org.gradientsync.internal.diagnosis.DeadlockDetector;
import org.gradientsync.internal.diagnosis.WatchedGroup;
import org.gradientsync.internal.matching.CallerThreads;
import org.gradientsync.internal.ranks.ContextIds;
import org.gradientsync.internal.ranks.Departure;
import org.gradientsync.internal.ranks.GroupKey;
import org.gradientsync.internal.ranks.JobLiveness;
import org.gradientsync.internal.ranks.RankMap;
import org.gradientsync.spi.Transport;

/**
 * What all groups of one job share on this rank: tag ranges, the knowledge of who has died, the
 * deadlock detector, and the list of groups that are open. For any thread; takes no group's lock.
 */
public final class Job implements DeadlockDetector.Groups {
  /** A group, as its job sees it. */
  interface Member {
    /** What diagnosis sees of it. */
    WatchedGroup watched();

    /** Its lines in another group's report. */
    List<String> lines();

    /**
     * Sends the departure notices of a process that ends.
     *
     * @return whether no call of the group has failed
     */
    boolean leave(Departure departure, String reason);
  }

  private final ContextIds contexts = new ContextIds();
  private final CallerThreads callerThreads = new CallerThreads();
  private final Set<Member> open = new LinkedHashSet<>();
  private final JobLiveness liveness;
  private final DeadlockDetector deadlockDetector;
  private final int ranksOnNode;
  private final Bells bells;
  private boolean everBroken;
  private volatile boolean ending;

  /**
   * A job.
   *
   * @param world all its ranks
   */
  Job(Transport transport, RankMap world) {
    liveness = new JobLiveness(transport);
    deadlockDetector = new DeadlockDetector(transport, this);
    List<Integer> node = world.onNode(world.nodeOf(world.rank()));
    ranksOnNode = node.size();
    bells = new Bells(node.indexOf(world.rank()), ranksOnNode);
  }

  ContextIds contexts() {
    return contexts;
  }

  CallerThreads callerThreads() {
    return callerThreads;
  }

  JobLiveness liveness() {
    return liveness;
  }

  DeadlockDetector deadlockDetector() {
    return deadlockDetector;
  }

  Bells bells() {
    return bells;
  }

  /** How many ranks of the job run on this rank's node, itself included. */
  int ranksOnNode() {
    return ranksOnNode;
  }

  synchronized void opened(Member group) {
    open.add(group);
  }

  /** A range whose messages may still be under way is never used again. */
  synchronized void closed(Member group, int context, boolean reusable) {
    open.remove(group);
    if (reusable) {
      contexts.release(context);
    } else {
      everBroken = true;
    }
  }

  private synchronized List<Member> open() {
    return List.copyOf(open);
  }

  @Override
  public WatchedGroup find(GroupKey key) {
    return open().stream()
        .map(Member::watched)
        .filter(group -> group.key().equals(key))
        .findFirst()
        .orElse(null);
  }

  @Override
  public boolean hasSingleCaller() {
    return callerThreads.isSingle();
  }

  @Override
  public boolean isGone(int worldRank) {
    return liveness.isGone(worldRank);
  }

  /** What a group's report says of this rank's other groups. */
  List<Supplier<List<String>>> statesOfOthers(Member group) {
    List<Supplier<List<String>>> states = new ArrayList<>();
    for (Member other : open()) {
      if (other != group) {
        states.add(other::lines);
      }
    }
    return states;
  }

  /** Whether {@link #leave} has been called: no call of this process can be answered any more. */
  boolean isEnding() {
    return ending;
  }

  /**
   * Ends all calls of this process and notifies the ranks of all open groups.
   *
   * @return false if a group is or was broken
   */
  boolean leave(Departure departure, String reason) {
    boolean sound;
    synchronized (this) {
      sound = !everBroken;
    }
    List<Member> groups = open(); // before calls end, whose sync is closed without a word then
    ending = true;
    deadlockDetector.close(); // the messages below may end at any time
    for (Member group : groups) {
      try {
        sound &= group.leave(departure, reason);
      } catch (GradientSyncException e) {
        sound = false; // and the other groups are told all the same
      }
    }
    return sound;
  }
}

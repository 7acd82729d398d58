package org.gradientsync.core.sync;

import java.util.List;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.launch.LaunchedJob;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How another sync on the same device takes the place of one whose ranks change: fewer after a
 * loss, more when others join.
 */
final class Succession {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final int MOST_ROUNDS = 3; // with the same ranks

  private final GradientSyncImpl sync;
  private final Selection selection;
  private final BackendDevice device;
  private final Communicator communicator;

  Succession(GradientSyncImpl sync, Selection selection) {
    this(sync, selection, sync.choice.communicator());
  }

  /** For tests: with another communicator of the same ranks. */
  Succession(GradientSyncImpl sync, Selection selection, Communicator communicator) {
    this.sync = sync;
    this.selection = selection;
    this.communicator = communicator;
    device = sync.choice.device();
  }

  private interface Successor {
    GradientSyncImpl make();
  }

  /** See {@link GradientSync#survivors}. */
  GradientSync ofSurvivors() {
    sync.choice.group().transport().goOnWithout(List.of()); // throws if that cannot be
    sync.order.closeThread();
    quietly(sync::closeParts);
    ProcessGroup group = sync.choice.group();
    Transport undecided = sync.takeUndecided();
    ProcessGroup left;
    try {
      left = group.survivors();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> leave(undecided));
      throw e;
    }
    return replaceBy(() -> ofThoseLeft(left, group.haveSomeLeft(), undecided));
  }

  /** See {@link Admission#admit}. */
  GradientSync withNewcomers() {
    Transport transport = sync.choice.group().transport();
    byte[] invitation = communicator.broadcast(invitation(transport), 0);
    if (invitation.length == 0) {
      return sync;
    }
    Transport joined = join(transport, invitation);
    boolean all;
    try {
      all = communicator.all(joined != null);
    } catch (RankLostException e) {
      sync.undecided = joined; // others may know that all have come, and go on there
      throw e;
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> leave(joined));
      throw e;
    }
    if (!all) { // everyone stays in this job
      leave(joined);
      return sync;
    }
    sync.order.closeThread();
    quietly(sync::closeParts);
    ProcessGroup world = LaunchedJob.follow(sync.choice.group(), joined);
    return replaceBy(() -> ofAll(world));
  }

  /** Leaves a job, if there is one, and tries to tell those that wait there. */
  static void leave(Transport joined) {
    if (joined != null) {
      ProcessGroup.world(joined).close(Departure.STAYED);
    }
  }

  /** What the others need to know of the new job; nothing on other ranks, or if there is none. */
  private byte[] invitation(Transport transport) {
    if (sync.rank() != 0) {
      return new byte[0];
    }
    try {
      return transport.invite(sync.size(), selection.agreed());
    } catch (GradientSyncException e) {
      log.warn("rank 0 of {} lets nobody join: {}", sync.size(), e.getMessage());
      return new byte[0];
    }
  }

  /** Returns null if not all have come. */
  private Transport join(Transport transport, byte[] invitation) {
    try {
      return transport.join(invitation, sync.rank());
    } catch (GradientSyncException e) {
      log.warn("rank {} cannot meet those that join: {}", sync.rank(), e.getMessage());
      return null;
    }
  }

  private GradientSync replaceBy(Successor successor) {
    GradientSyncImpl next;
    try {
      // What the lost ranks had mapped is released before more is mapped; the device stays open.
      quietly(() -> sync.closeExcept(device));
      next = successor.make();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, sync.ownDevice());
      throw e;
    }
    log.info(
        "rank {} of {} goes on as rank {} of {}",
        sync.rank(),
        sync.size(),
        next.rank(),
        next.size());
    return next;
  }

  /** Of all ranks of another job, or of those that are left of them. */
  private GradientSyncImpl ofAll(ProcessGroup world) {
    world.transport().goOnWithout(List.of()); // and may be joined again
    ProcessGroup group = world;
    ProcessGroup left;
    try {
      try {
        group = world.split(0, world.rank(), sync.choice.group().timeouts());
        return sync.successor(selection.choose(group, device));
      } catch (RankLostException | UnavailableException e) { // or it cannot use what the job uses
        log.warn("rank {} goes on without one that was to join: {}", sync.rank(), e.getMessage());
        left = group.survivors();
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, group == world ? () -> LaunchedJob.closeIfUnused(world) : group);
      throw e;
    }
    return ofThoseLeft(left, false, null);
  }

  /**
   * Ranks may be lost while the others prepare to go on. Every round begins with the same calls,
   * because a rank that has finished one may meet others here that have not.
   *
   * @param someWent whether ranks have left that may have gone to the undecided job
   * @param undecided a job that all ranks go to if others have gone there, and all can; or null
   */
  private GradientSyncImpl ofThoseLeft(ProcessGroup group, boolean someWent, Transport undecided) {
    ProcessGroup left = group;
    boolean went = someWent;
    Transport joined = undecided;
    ProcessGroup world = null;
    try {
      for (int round = 1; world == null; round++) {
        try {
          GroupCommunicator ranks = new GroupCommunicator(left);
          if (ranks.any(went) && ranks.all(joined != null)) {
            world = LaunchedJob.follow(sync.choice.group(), joined);
            joined = null;
          } else {
            leave(joined);
            joined = null;
            return sync.successor(selection.goOn(left, device));
          }
        } catch (RankLostException e) {
          log.warn("rank {} goes on again: {}", sync.rank(), e.getMessage());
          ProcessGroup before = left;
          left = before.survivors();
          went |= before.haveSomeLeft();
          round = left.size() < before.size() ? 0 : round;
          if (round == MOST_ROUNDS) {
            throw e; // nobody is lost, and it fails each time
          }
        }
      }
    } catch (RuntimeException | Error e) {
      Transport rest = joined;
      Resources.closeAllAfter(e, () -> leave(rest), left);
      throw e;
    }
    left.close();
    return ofAll(world);
  }

  private void quietly(Runnable closing) {
    try {
      closing.run();
    } catch (RuntimeException e) {
      log.debug("rank {}: calls had failed before it goes on", sync.rank(), e); // a lost rank's
    }
  }
}

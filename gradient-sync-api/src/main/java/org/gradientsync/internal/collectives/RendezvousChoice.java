package org.gradientsync.internal.collectives;

import java.nio.LongBuffer;
import java.util.Arrays;
import org.gradientsync.UnavailableException;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.matching.InlinePayload;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.internal.matching.SharedMemoryRendezvous;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses how ranks meet whose gradients go by messages. Those of one node do it in shared memory:
 * a few loads and stores instead of a message to and from each other rank. All others meet by
 * messages that bring small gradients, too ({@link InlinePayload}).
 */
public final class RendezvousChoice {
  private static final Logger log = LoggerFactory.getLogger(RendezvousChoice.class);

  private RendezvousChoice() {}

  /**
   * Meets in shared memory from the next call on, if all ranks are on one node, can share memory,
   * and none has the setting {@code rendezvous=messages}; otherwise by messages. Collective, before
   * reducers of the group are made.
   *
   * @param ranks which are processes
   * @param settings this rank's
   * @param carriesPayload whether messages are to bring small gradients, too; the same on all ranks
   * @throws IllegalArgumentException if the setting is anything else
   */
  public static void choose(RankGroup ranks, Settings settings, boolean carriesPayload) {
    boolean messages = settings.meetsByMessages();
    ProcessGroup group = ProcessGroup.of(ranks);
    if (group.size() == 1) {
      return;
    }
    GroupCommunicator communicator = new GroupCommunicator(group);
    if (!NodeMemory.isPossible(communicator)) {
      useMessages(group, carriesPayload);
      return;
    }
    long[] wishes = new long[group.size()];
    LongBuffer own = LongBuffer.wrap(new long[] {messages ? 1 : 0});
    communicator.allGather(own, LongBuffer.wrap(wishes));
    if (Arrays.stream(wishes).anyMatch(wish -> wish != 0)) {
      useMessages(group, carriesPayload);
      return;
    }
    try {
      NodeMemory memory = NodeMemory.share(communicator, SharedMemoryRendezvous.BYTES);
      group
          .arrivals()
          .useRendezvous(new SharedMemoryRendezvous(memory, group.rank(), group.size()));
    } catch (UnavailableException e) {
      log.info("rank {} meets the others by messages: {}", group.rank(), e.getMessage());
      useMessages(group, carriesPayload);
    }
  }

  private static void useMessages(ProcessGroup group, boolean carriesPayload) {
    if (carriesPayload) {
      group.arrivals().useInlinePayload();
    }
  }
}

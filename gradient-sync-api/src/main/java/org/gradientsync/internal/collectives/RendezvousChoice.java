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
 * Chooses the rendezvous of ranks whose gradients travel by messages. Ranks of one node use shared
 * memory: a few loads and stores instead of a message to and from each other rank. Others use
 * messages, which can carry small gradients ({@link InlinePayload}).
 */
public final class RendezvousChoice {
  private static final Logger log = LoggerFactory.getLogger(RendezvousChoice.class);

  private RendezvousChoice() {}

  /**
   * Uses shared memory from the next call on if all ranks are on one node, can share memory, and
   * none has the setting {@code rendezvous=messages}; otherwise messages. Collective, before the
   * reducers of the group are made.
   *
   * @param ranks processes
   * @param settings this rank's
   * @param carriesPayload whether messages may carry small gradients; the same on all ranks
   * @throws IllegalArgumentException if the setting has another value
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

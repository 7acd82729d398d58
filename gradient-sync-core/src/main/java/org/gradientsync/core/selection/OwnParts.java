package org.gradientsync.core.selection;

import java.nio.ByteBuffer;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.RendezvousChoice;
import org.gradientsync.core.collectives.nodes.TwoLevelReducerProvider;
import org.gradientsync.core.collectives.shared.SharedMemoryReducerProvider;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerParts;
import org.gradientsync.spi.SyncContext;

/** The parts that this library offers to backends. */
public final class OwnParts implements ReducerParts {
  @Override
  public Reducer overMessages(SyncContext context, String name, int chunkBytes) {
    boolean carriesPayload = context.device() instanceof HostDevice;
    RendezvousChoice.choose(context.group(), context.settings(), carriesPayload);
    return new MessageReducer(name, context.group(), context.device(), chunkBytes);
  }

  @Override
  public Reducer inHostMemory(SyncContext context, BackendDevice host) {
    SyncContext onHost =
        new SyncContext(
            context.group(), context.communicator(), host, context.settings(), context.parts());
    SharedMemoryReducerProvider shared = new SharedMemoryReducerProvider();
    TwoLevelReducerProvider twoLevel = new TwoLevelReducerProvider();
    try {
      if (shared.isPossible(onHost)) {
        return shared.create(onHost);
      }
      if (twoLevel.whyImpossible(onHost).isEmpty()) {
        return twoLevel.create(onHost);
      }
    } catch (UnavailableException e) {
      // on all ranks; messages always work
    }
    if (context.communicator().nodeCount() > 1) {
      RendezvousChoice.choose(context.group(), context.settings(), false);
    }
    return new MessageReducer("messages", context.group(), host);
  }

  @Override
  public BackendDevice hostDevice() {
    return new HostDevice();
  }

  @Override
  public ByteBuffer[] memoryOfNode(SyncContext context, int bytes) {
    return NodeMemory.share(context.communicator(), bytes).memory();
  }
}

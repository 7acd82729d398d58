package org.gradientsync.core.local;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.stream.LongStream;
import org.gradientsync.Communicator;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.RendezvousChoice;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.MessageReducerProvider;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.SyncContext;

/** Provides {@code local}, the reducer for threads of one JVM and host memory. */
public final class LocalReducerProvider extends MessageReducerProvider {
  // Each rank keeps counters of all others. More ranks send log n messages, as they do without
  // this.
  private static final int MOST_IN_MEMORY = 32;

  /** For the service loader. */
  public LocalReducerProvider() {
    super(LocalTransport.NAME, 50, "the ranks are not threads of one JVM");
  }

  @Override
  public Reducer create(SyncContext context) {
    RankGroup ranks = context.group();
    if (ranks.size() <= MOST_IN_MEMORY && ranks.transport() instanceof LocalTransport transport) {
      RendezvousChoice.choose(
          ranks,
          context.settings(),
          false,
          communicator ->
              new SharedMemoryRendezvous(
                  new NodeMemory(null, null, share(communicator, transport.group())),
                  ranks.rank(),
                  ranks.size(),
                  transport.group()::requireAlive));
    }
    return new MessageReducer(name(), ranks, context.device());
  }

  /** Zeros of each rank. Collective. */
  private static ByteBuffer[] share(Communicator ranks, LocalGroup threads) {
    ByteBuffer own = HostBuffers.allocate(SharedMemoryRendezvous.BYTES);
    long[] keys = new long[ranks.size()];
    long key = threads.show(own);
    try {
      ranks.allGather(LongBuffer.wrap(new long[] {key}), LongBuffer.wrap(keys));
      ByteBuffer[] all = LongStream.of(keys).mapToObj(threads::shown).toArray(ByteBuffer[]::new);
      ranks.barrier(); // all have seen it
      return all;
    } finally {
      threads.hide(key);
    }
  }
}

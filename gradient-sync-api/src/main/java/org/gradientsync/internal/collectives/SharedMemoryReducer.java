package org.gradientsync.internal.collectives;

import java.util.HashMap;
import java.util.Map;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostBuffer;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.host.SharedFiles;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.internal.matching.SharedMemoryRendezvous;
import org.gradientsync.spi.Reducer;

/**
 * The reducer for processes of one node, which read each other's buffers in place.
 *
 * <p>Each rank owns a shard. After the rendezvous it reduces its shard in rank order, directly from
 * all ranks' memory into its own. Then it copies the other shards from their owners, and returns
 * when no rank reads its memory any more. In place, without a staging copy or a system call.
 *
 * <p>With each call, ranks announce where their buffers lie: the id of the memory and the offset in
 * it. If any rank's buffer lies in private memory (wrapped, or allocated when the memory file
 * system was full), all ranks reduce it by messages.
 */
public final class SharedMemoryReducer implements Reducer {
  private final String name;
  private final ProcessGroup group;
  private final SharedMemoryRendezvous rendezvous;
  private final HostDevice device;
  private final NodeMemory node;
  private final MessageReducer messages;
  private final PlanCache<Plan> plans;
  private final Map<Place, Mapping> mappings = new HashMap<>();

  /** The place of a rank's memory. */
  private record Place(int rank, long id) {}

  /** Another rank's memory, and the number of plans that read it. */
  private static final class Mapping {
    private final HostBuffer memory;
    private int users;

    Mapping(HostBuffer memory) {
      this.memory = memory;
    }
  }

  /** The views for reducing one buffer, valid while the ranks' buffers stay in place. */
  private static final class Plan {
    private final long[] ids;
    private final long[] offsets;
    private final HostBuffer[] whole;
    private final DeviceBuffer[] contributions;
    private final Shards shards;

    Plan(int size, Shards shards) {
      ids = new long[size];
      offsets = new long[size];
      whole = new HostBuffer[size];
      contributions = new DeviceBuffer[size];
      this.shards = shards;
    }
  }

  SharedMemoryReducer(
      String name,
      ProcessGroup group,
      SharedMemoryRendezvous rendezvous,
      HostDevice device,
      NodeMemory node) {
    this.name = name;
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.node = node;
    this.messages = new MessageReducer(name, group, device);
    this.plans = new PlanCache<>(group, this::end);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    HostBuffer own = (HostBuffer) buffer;
    synchronized (group) {
      group.meetForAllReduce(own, op);
      if (group.size() == 1 || own.count() == 0) {
        group.finished();
        return;
      }
      if (anyPrivate()) {
        messages.reduceAfterRendezvous(own, op);
        group.finished();
        return;
      }
      try {
        run(plan(own), op);
        group.finished();
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        // Includes InternalError, which the JVM throws for access to a mapping of a truncated file.
        requireNoneGaveUp(e); // its memory may be gone
        requireNoneClosed(own, e);
        throw group.lost("the call failed in the middle: " + e, e);
      }
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    messages.broadcast(buffer, root);
  }

  private void run(Plan plan, ReduceOp op) {
    int rank = group.rank();
    int size = group.size();
    DeviceBuffer[] contributions = plan.contributions;
    if (contributions[rank] != null) {
      device.reduce(contributions, contributions[rank], op);
    }
    rendezvous.set(SharedMemoryRendezvous.REDUCED);
    for (int step = 1; step < size; step++) {
      int owner = (rank + step) % size; // each starts with a different owner, to spread the load
      group.await(rendezvous.flag(owner, SharedMemoryRendezvous.REDUCED), owner);
      plan.whole[rank].copyRange(
          plan.shards.first(owner, 0), plan.whole[owner], plan.shards.length(owner, 0));
    }
    rendezvous.set(SharedMemoryRendezvous.DONE);
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        group.await(rendezvous.flag(peer, SharedMemoryRendezvous.DONE), peer);
      }
    }
    requireNoneGaveUp(null); // such a rank may have changed its buffer while this one read it
  }

  private void requireNoneGaveUp(Throwable cause) {
    for (int peer = 0; peer < group.size(); peer++) {
      if (peer != group.rank() && rendezvous.gaveUp(peer)) {
        throw group.lost(peer, cause);
      }
    }
  }

  /** Names the rank that has closed its buffer during the call. */
  private void requireNoneClosed(HostBuffer own, Throwable cause) {
    String buffer = own.describe(); // the same on all ranks
    if (own.isClosed()) {
      throw group.lost("this rank closed its buffer during the call: buffer=" + buffer, cause);
    }
    for (int peer = 0; peer < group.size(); peer++) {
      long id = Call.memoryId(rendezvous.call(peer));
      if (peer != group.rank() && !SharedFiles.isThere(node.process(peer), node.secret(peer), id)) {
        throw group.lost(
            group.name(peer) + " closed its buffer during the call: buffer=" + buffer, cause);
      }
    }
  }

  private boolean anyPrivate() {
    boolean any = false;
    for (int peer = 0; peer < group.size(); peer++) {
      any |= Call.memoryId(rendezvous.call(peer)) < 0;
    }
    return any;
  }

  private Plan plan(HostBuffer own) {
    Plan plan = plans.get(own);
    if (plan != null && isValid(plan)) {
      return plan;
    }
    plans.forget(own);
    int rank = group.rank();
    int size = group.size();
    Shards shards = new Shards(own.count(), size, Shards.WHOLE);
    plan = new Plan(size, shards);
    for (int peer = 0; peer < size; peer++) {
      plan.ids[peer] = Call.memoryId(rendezvous.call(peer));
      plan.offsets[peer] = Call.memoryOffset(rendezvous.call(peer));
      plan.whole[peer] =
          peer == rank
              ? own
              : (HostBuffer)
                  mapping(own, peer, plan.ids[peer])
                      .memory
                      .reinterpret(own.type())
                      .slice(plan.offsets[peer], own.count());
      if (shards.length(rank, 0) > 0) {
        plan.contributions[peer] =
            plan.whole[peer].slice(shards.first(rank, 0), shards.length(rank, 0));
      }
    }
    plans.put(own, plan);
    return plan;
  }

  private boolean isValid(Plan plan) {
    boolean valid = true;
    for (int peer = 0; peer < group.size(); peer++) {
      valid &= Call.memoryId(rendezvous.call(peer)) == plan.ids[peer];
      valid &= Call.memoryOffset(rendezvous.call(peer)) == plan.offsets[peer];
    }
    return valid;
  }

  private Mapping mapping(HostBuffer own, int peer, long id) {
    Mapping mapping =
        mappings.computeIfAbsent(
            new Place(peer, id),
            place ->
                new Mapping(device.map(own.type(), node.process(peer), node.secret(peer), id)));
    mapping.users++;
    return mapping;
  }

  private void end(Plan plan) {
    for (int peer = 0; peer < plan.ids.length; peer++) {
      Place place = new Place(peer, plan.ids[peer]);
      Mapping mapping = mappings.get(place);
      if (mapping != null && --mapping.users == 0) {
        mappings.remove(place);
        mapping.memory.close();
      }
    }
  }

  @Override
  public void close() {
    synchronized (group) {
      plans.close();
      messages.close();
    }
  }
}

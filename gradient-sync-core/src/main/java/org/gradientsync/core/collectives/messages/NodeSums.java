package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.GatheredCalls;
import org.gradientsync.core.rendezvous.LeaderSums;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.core.rendezvous.SumRounds;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;

/**
 * All-reduces and reduce-scatters over several nodes, in any order of sums, that are so small that
 * sums of whole inputs travel with the calls of the rendezvous. The first rank of each node adds
 * the contributions of its node in rank order, and all of these ranks add in the same {@link
 * SumRounds}, so all get the same bits. No message follows.
 */
final class NodeSums implements LeaderSums, AutoCloseable {
  private final MessageRendezvous rendezvous;
  private final HostDevice device;
  private final int local; // this rank's number on its node
  private final int size;
  private final SumRounds rounds; // null unless this rank adds
  private final ByteBuffer memory; // of the sums, or null
  private final Map<DataType, Views> views = new EnumMap<>(DataType.class);
  private HostBuffer own; // the input of the current call
  private ReduceOp op;
  private Views current; // of its type
  private int sumBytes;

  /** The memory, as elements of a type. */
  private final class Views {
    private final HostBuffer[][] parts = new HostBuffer[Rendezvous.SLOTS][];
    private final HostBuffer[] results = new HostBuffer[Rendezvous.SLOTS];
    private final DeviceBuffer[] sums; // by slot
    private final DeviceBuffer[][] added; // by round, those that give the next sum

    Views(DataType type) {
      for (int slot = 0; slot < parts.length; slot++) {
        parts[slot] = new HostBuffer[rendezvous.calls().nodeSize()];
        for (int local = 0; local < parts[slot].length; local++) {
          parts[slot][local] = (HostBuffer) device.wrap(type, rendezvous.calls().part(local, slot));
        }
        ByteBuffer result = rendezvous.calls().part(parts[slot].length, slot);
        results[slot] = (HostBuffer) device.wrap(type, result);
      }
      sums = new DeviceBuffer[rounds == null ? 0 : rounds.slots()];
      for (int i = 0; i < sums.length; i++) {
        ByteBuffer part = memory.slice(at(i), GatheredCalls.MAX_SUM).order(memory.order());
        sums[i] = device.wrap(type.accumulator(), part);
      }
      added = new DeviceBuffer[rounds == null ? 0 : rounds.count()][];
      for (int round = 0; round < added.length; round++) {
        added[round] =
            Arrays.stream(rounds.parts(round)).mapToObj(i -> sums[i]).toArray(DeviceBuffer[]::new);
      }
    }

    void close() {
      Resources.closeAll(results);
      for (HostBuffer[] slot : parts) {
        Resources.closeAll(slot);
      }
      Resources.closeAll(sums);
    }
  }

  NodeSums(MessageRendezvous rendezvous, HostDevice device, int size) {
    this.rendezvous = rendezvous;
    this.device = device;
    local = rendezvous.localRank();
    this.size = size;
    rounds = rendezvous.sumRounds();
    memory = rounds == null ? null : HostBuffers.allocate(at(rounds.slots()));
  }

  MessageRendezvous rendezvous() {
    return rendezvous;
  }

  private static int at(int slot) {
    return slot * GatheredCalls.MAX_SUM;
  }

  /** Whether a buffer is small enough; the same on all ranks whose calls match. */
  boolean fits(DeviceBuffer buffer) {
    return buffer.count() > 0 && bytes(buffer) <= GatheredCalls.MAX_SUM;
  }

  private static long bytes(DeviceBuffer buffer) {
    return buffer.count() * buffer.type().accumulator().sizeInBytes();
  }

  /** Sends sums of a buffer's elements with the next call. */
  void begin(DeviceBuffer buffer, ReduceOp newOp) {
    own = (HostBuffer) buffer;
    op = newOp;
    sumBytes = (int) bytes(buffer);
    current = views.get(buffer.type());
    if (current == null) {
      current = new Views(buffer.type());
      views.put(buffer.type(), current);
    }
    rendezvous.carry(this);
  }

  @Override
  public int bytes() {
    return sumBytes;
  }

  @Override
  public void write(int slot) {
    current.parts[slot][local].copyRange(0, own, own.count());
  }

  @Override
  public void begin(int slot) {
    device.accumulate(null, current.parts[slot], current.sums[0], own.count(), op);
  }

  @Override
  public void give(int round, ByteBuffer out, int at, int bytes) {
    if (round > 0) {
      add(round - 1);
    }
    out.put(at, memory, at(rounds.sum(round)), bytes);
  }

  @Override
  public void take(int round, int source, ByteBuffer in, int at, int bytes) {
    memory.put(at(rounds.taken(round)[source]), in, at, bytes);
  }

  /** Adds what has come in a round. */
  private void add(int round) {
    DeviceBuffer sum = current.sums[rounds.sum(round + 1)];
    device.accumulate(null, current.added[round], sum, own.count(), op);
  }

  @Override
  public void finish(int slot) {
    if (rounds.count() > 0) {
      add(rounds.count() - 1);
    }
    DeviceBuffer total = current.sums[rounds.sum(rounds.count())];
    device.round(total, current.results[slot], own.count(), op, size);
  }

  /** Whether the sum over all ranks has come with the calls. */
  boolean hasCome() {
    return rendezvous.areAllSame();
  }

  /** Copies what of it is this rank's. */
  void finish(CollectiveCall call, int rank) {
    HostBuffer out = (HostBuffer) call.out();
    long first = call.kind() == Kind.REDUCE_SCATTER ? rank * out.count() : 0;
    out.copyRange(0, current.results[rendezvous.slot()], first, out.count());
  }

  @Override
  public void close() {
    views.values().forEach(Views::close);
    views.clear();
  }
}

package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The calls of one {@link org.gradientsync.GradientSync#grouped}, prepared once and run many times.
 * All-reduces of the same type, operation and stream are fused into one, if the reducer can do
 * that; otherwise small ones are packed into one buffer, which is reduced at once. Each element's
 * sum, and so its bits, are the same. Other collectives run one after the other. Messages run last,
 * all at the same time.
 */
final class CallGroup implements AutoCloseable {
  private static final long MAX_PACK_BYTES = 32 << 20;

  private final List<CollectiveCall> calls;
  private final List<Step> steps = new ArrayList<>();
  private final List<CollectiveCall> messages = new ArrayList<>();
  private final List<AbstractDeviceBuffer> buffers = new ArrayList<>();
  private final List<String> names = new ArrayList<>(); // of the buffers
  private final BackendDevice device;
  private final RankGroup ranks;
  private final Reducer reducer;
  private Runnable forget; // or null
  private boolean captured;

  /** One call, or several that run as one. */
  private interface Step extends AutoCloseable {
    void run(CallRunner runner);

    /** Whether a graph that is being captured will use this step's own memory. */
    default boolean isCapturing() {
      return false;
    }

    @Override
    default void close() {}
  }

  /** What calls that run as one have in common. */
  private record Key(DataType type, ReduceOp op, Stream stream) {}

  CallGroup(List<CollectiveCall> calls, BackendDevice device, RankGroup ranks, Reducer reducer) {
    this.calls = List.copyOf(calls);
    this.device = device;
    this.ranks = ranks;
    this.reducer = reducer;
    try {
      prepare(ranks.size() > 1);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /**
   * Collects all-reduces until another collective comes, or one of the same elements as another:
   * these keep their order. All ranks must decide alike: what decides are the calls themselves, and
   * whether all-reduced buffers overlap.
   */
  private void prepare(boolean several) {
    Map<Key, List<CollectiveCall>> open = new LinkedHashMap<>();
    for (CollectiveCall call : calls) {
      add(call.in());
      if (call.out() != call.in()) {
        add(call.out());
      }
      if (call.kind().isMessage()) {
        messages.add(requireSeparate(call));
        continue;
      }
      boolean reduces = several && call.kind() == Kind.ALL_REDUCE;
      if (!reduces || overlapsAny(call, open)) {
        addOpen(open);
      }
      if (reduces) {
        Key key = new Key(call.in().type(), call.op(), device.streamOf(call.in()));
        open.computeIfAbsent(key, k -> new ArrayList<>()).add(call);
      } else {
        steps.add(runner -> runner.run(call));
      }
    }
    addOpen(open);
  }

  /** Throws if a message would be received into elements of another one: they move together. */
  private CollectiveCall requireSeparate(CollectiveCall message) {
    AbstractDeviceBuffer buffer = (AbstractDeviceBuffer) message.buffer();
    for (CollectiveCall other : messages) {
      boolean onlySent = message.sends() && other.sends();
      if (!onlySent && buffer.overlaps((AbstractDeviceBuffer) other.buffer())) {
        throw new IllegalArgumentException(
            "messages of a group overlap: %s=%s, %s=%s, rank=%s; receive into a buffer of its own"
                .formatted(
                    message.kind().text(),
                    buffer,
                    other.kind().text(),
                    other.buffer(),
                    ranks.rank()));
      }
    }
    return message;
  }

  private void addOpen(Map<Key, List<CollectiveCall>> open) {
    open.values().forEach(this::addReductions);
    open.clear();
  }

  /** Whether a call uses elements of a collected one, so that their order matters. */
  private static boolean overlapsAny(CollectiveCall call, Map<Key, List<CollectiveCall>> open) {
    AbstractDeviceBuffer buffer = (AbstractDeviceBuffer) call.in();
    return open.values().stream()
        .flatMap(List::stream)
        .anyMatch(other -> buffer.overlaps((AbstractDeviceBuffer) other.in()));
  }

  private void add(DeviceBuffer buffer) {
    if (buffer != null) {
      buffers.add((AbstractDeviceBuffer) buffer);
      names.add(((AbstractDeviceBuffer) buffer).name());
    }
  }

  /**
   * Adds all-reduces as one, if the reducer can do that; or else large ones, and small ones packed.
   */
  private void addReductions(List<CollectiveCall> reductions) {
    CollectiveCall first = reductions.get(0);
    AbstractDeviceBuffer fused =
        reductions.size() == 1
            ? null
            : reducer.fuse(inputs(reductions), first.op(), nameOf(reductions));
    if (fused != null) {
      steps.add(new Pack(reductions, device, fused, null));
      return;
    }
    List<CollectiveCall> pack = new ArrayList<>();
    for (CollectiveCall call : reductions) {
      if (call.in().sizeInBytes() > device.packsUpTo()) {
        steps.add(runner -> runner.run(call));
        continue;
      }
      pack.add(call);
      if (bytes(pack) > MAX_PACK_BYTES - device.packsUpTo()) {
        addPack(pack);
        pack = new ArrayList<>();
      }
    }
    addPack(pack);
  }

  private static String nameOf(List<CollectiveCall> reductions) {
    return inputs(reductions).stream()
        .map(AbstractDeviceBuffer::describe)
        .collect(Collectors.joining(", ", "grouped ", ""));
  }

  private static List<AbstractDeviceBuffer> inputs(List<CollectiveCall> reductions) {
    return reductions.stream().map(call -> (AbstractDeviceBuffer) call.in()).toList();
  }

  private static long bytes(List<CollectiveCall> pack) {
    return pack.stream().mapToLong(call -> call.in().sizeInBytes()).sum();
  }

  private void addPack(List<CollectiveCall> pack) {
    if (pack.size() == 1) {
      CollectiveCall call = pack.get(0);
      steps.add(runner -> runner.run(call));
    } else if (pack.size() > 1) {
      DeviceBuffer first = pack.get(0).in();
      requireNoCapture(first);
      long count = pack.stream().mapToLong(call -> call.in().count()).sum();
      DeviceBuffer memory;
      try {
        memory = Unclosed.exempt(device.allocate(first.type(), count));
      } catch (RuntimeException | Error e) { // not agreed on: other ranks may have kept their group
        throw ranks.broken("cannot allocate the pack of a group: " + e.getMessage(), e);
      }
      device.await(memory); // it must be zeroed before another stream writes to it
      AbstractDeviceBuffer packed =
          (AbstractDeviceBuffer) device.on(device.streamOf(first), memory);
      steps.add(new Pack(pack, device, packed.named(nameOf(pack)), memory));
    }
  }

  /** Throws during capture: neither the memory of a pack nor its first call can be captured. */
  private void requireNoCapture(DeviceBuffer buffer) {
    if (device.streamOf(buffer).isCapturing()) {
      throw new IllegalStateException(
          "the stream is being captured: buffer=%s, rank=%s; make the same group once before"
              .formatted(buffer, ranks.rank()));
    }
  }

  /** Whether this was made of the same calls, with the same names. Allocates nothing. */
  boolean isOf(List<CollectiveCall> others) {
    if (calls.size() != others.size()) {
      return false;
    }
    for (int i = 0; i < calls.size(); i++) {
      if (!calls.get(i).equals(others.get(i))) {
        return false;
      }
    }
    for (int i = 0; i < names.size(); i++) {
      if (!Objects.equals(names.get(i), buffers.get(i).name())) { // the packs have it
        return false;
      }
    }
    return true;
  }

  /** Sets what to do when one of the buffers is closed. */
  void onClose(Runnable newForget) {
    forget = newForget;
    buffers.forEach(buffer -> buffer.onClose(newForget));
  }

  void run(CallRunner runner) {
    for (Step step : steps) {
      captured |= step.isCapturing();
      step.run(runner);
    }
    if (!messages.isEmpty()) {
      reducer.exchange(messages);
    }
  }

  /** Whether a graph may use this group's own memory. */
  boolean isCaptured() {
    return captured;
  }

  @Override
  public void close() {
    if (forget != null) {
      buffers.forEach(buffer -> buffer.removeCloseListener(forget));
    }
    steps.forEach(Step::close);
  }

  /** Buffers that are reduced as one. */
  private static final class Pack implements Step {
    private final BackendDevice device;
    private final CollectiveCall reduction;
    private final DeviceBuffer whole;
    private final DeviceBuffer memory; // into which the parts are copied; null if they are fused
    private final DeviceBuffer[] parts;
    private final DeviceBuffer[] places; // in the memory

    /**
     * @param whole all parts, one after the other, on their stream
     * @param memory what {@code whole} is a view of; null if the reducer has fused them
     */
    Pack(
        List<CollectiveCall> calls,
        BackendDevice device,
        AbstractDeviceBuffer whole,
        DeviceBuffer memory) {
      this.device = device;
      this.whole = whole;
      this.memory = memory;
      parts = calls.stream().map(CollectiveCall::in).toArray(DeviceBuffer[]::new);
      whole.elementsNamed(this::nameOf);
      reduction = CollectiveCall.allReduce(whole, calls.get(0).op());
      places = memory == null ? null : new DeviceBuffer[parts.length];
      long first = 0;
      for (int i = 0; memory != null && i < parts.length; i++) {
        places[i] = whole.slice(first, parts[i].count());
        first += parts[i].count();
      }
    }

    /** The place of an element in the caller's buffer. */
    private String nameOf(long element) {
      long first = 0;
      for (DeviceBuffer part : parts) {
        if (element < first + part.count()) {
          return ((AbstractDeviceBuffer) part).describe()
              + ", "
              + ((AbstractDeviceBuffer) part).placeOf(element - first);
        }
        first += part.count();
      }
      return "";
    }

    @Override
    public boolean isCapturing() {
      return device.streamOf(whole).isCapturing();
    }

    @Override
    public void run(CallRunner runner) {
      if (memory == null) {
        runner.run(reduction);
        return;
      }
      device.copyAll(parts, places);
      runner.run(reduction);
      device.copyAll(places, parts);
    }

    @Override
    public void close() {
      (memory == null ? whole : memory).close();
    }
  }
}

package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The calls of one {@link org.gradientsync.GradientSync#grouped}, prepared once and run many times.
 * Small all-reduces of the same type, operation and stream are packed into one buffer, which is
 * reduced at once; each element's sum, and so its bits, are the same. Other collectives run one
 * after the other. Messages run last, all at the same time.
 */
final class CallGroup implements AutoCloseable {
  private static final long MAX_PACK_BYTES = 32 << 20;

  private final List<CollectiveCall> calls;
  private final List<Step> steps = new ArrayList<>();
  private final List<CollectiveCall> messages = new ArrayList<>();
  private final List<AbstractDeviceBuffer> buffers = new ArrayList<>();
  private final BackendDevice device;
  private final RankGroup ranks;
  private Runnable forget; // or null
  private boolean captured;

  /** One call, or several packed ones. */
  private interface Step extends AutoCloseable {
    void run(CallRunner runner);

    /** Whether a graph that is being captured will use this step's own memory. */
    default boolean isCapturing() {
      return false;
    }

    @Override
    default void close() {}
  }

  /** What packed calls have in common. */
  private record PackKey(DataType type, ReduceOp op, Stream stream) {}

  CallGroup(List<CollectiveCall> calls, BackendDevice device, RankGroup ranks) {
    this.calls = List.copyOf(calls);
    this.device = device;
    this.ranks = ranks;
    try {
      prepare(ranks.size() > 1);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /**
   * Packs small all-reduces behind the large ones between them. Calls of the same elements and
   * other collectives keep their order. All ranks must pack alike: what decides are the calls
   * themselves, and whether all-reduced buffers overlap.
   */
  private void prepare(boolean packs) {
    Map<PackKey, List<CollectiveCall>> open = new LinkedHashMap<>();
    for (CollectiveCall call : calls) {
      add(call.in());
      if (call.out() != call.in()) {
        add(call.out());
      }
      if (call.kind().isMessage()) {
        messages.add(requireSeparate(call));
        continue;
      }
      boolean reduces = packs && call.kind() == Kind.ALL_REDUCE;
      boolean small = reduces && call.in().sizeInBytes() <= device.packsUpTo();
      if (!reduces || overlapsAny(call, open)) {
        addPacks(open);
      }
      if (!small) {
        steps.add(runner -> runner.run(call));
        continue;
      }
      PackKey key = new PackKey(call.in().type(), call.op(), device.streamOf(call.in()));
      List<CollectiveCall> pack = open.computeIfAbsent(key, k -> new ArrayList<>());
      pack.add(call);
      if (bytes(pack) > MAX_PACK_BYTES - device.packsUpTo()) {
        addPack(open.remove(key));
      }
    }
    addPacks(open);
  }

  /** Throws if a message would be received into elements of another one: they move together. */
  private CollectiveCall requireSeparate(CollectiveCall message) {
    AbstractDeviceBuffer buffer = (AbstractDeviceBuffer) message.buffer();
    for (CollectiveCall other : messages) {
      boolean onlySent = message.sends() && other.sends();
      if (!onlySent && buffer.overlaps((AbstractDeviceBuffer) other.buffer())) {
        throw new IllegalArgumentException(
            "messages of a group overlap: "
                + message.kind().text()
                + "="
                + buffer
                + ", "
                + other.kind().text()
                + "="
                + other.buffer()
                + ", rank="
                + ranks.rank()
                + "; receive into a buffer of its own");
      }
    }
    return message;
  }

  private void addPacks(Map<PackKey, List<CollectiveCall>> open) {
    open.values().forEach(this::addPack);
    open.clear();
  }

  /** Whether a call uses elements of a call that is to be packed, so that their order matters. */
  private static boolean overlapsAny(CollectiveCall call, Map<PackKey, List<CollectiveCall>> open) {
    AbstractDeviceBuffer buffer = (AbstractDeviceBuffer) call.in();
    return open.values().stream()
        .flatMap(List::stream)
        .anyMatch(other -> buffer.overlaps((AbstractDeviceBuffer) other.in()));
  }

  private void add(DeviceBuffer buffer) {
    if (buffer != null) {
      buffers.add((AbstractDeviceBuffer) buffer);
    }
  }

  private static long bytes(List<CollectiveCall> pack) {
    return pack.stream().mapToLong(call -> call.in().sizeInBytes()).sum();
  }

  private void addPack(List<CollectiveCall> pack) {
    if (pack.size() == 1) {
      CollectiveCall call = pack.get(0);
      steps.add(runner -> runner.run(call));
    } else {
      requireNoCapture(pack.get(0).in());
      steps.add(new Pack(pack, device));
    }
  }

  /** Throws during capture: neither the memory of a pack nor its first call can be captured. */
  private void requireNoCapture(DeviceBuffer buffer) {
    if (device.streamOf(buffer).isCapturing()) {
      throw new IllegalStateException(
          "the stream is being captured: buffer="
              + buffer
              + ", rank="
              + ranks.rank()
              + "; make the same group once before");
    }
  }

  /** Whether this was made of the same calls. Allocates nothing. */
  boolean isOf(List<CollectiveCall> others) {
    if (calls.size() != others.size()) {
      return false;
    }
    for (int i = 0; i < calls.size(); i++) {
      if (!calls.get(i).equals(others.get(i))) {
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
      runner.exchange(messages);
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

  /** Small buffers that are reduced as one. */
  private static final class Pack implements Step {
    private final BackendDevice device;
    private final CollectiveCall reduction;
    private final DeviceBuffer memory;
    private final DeviceBuffer packed; // the same memory, on the buffers' stream
    private final DeviceBuffer[] parts;
    private final DeviceBuffer[] places;

    Pack(List<CollectiveCall> calls, BackendDevice device) {
      this.device = device;
      parts = calls.stream().map(CollectiveCall::in).toArray(DeviceBuffer[]::new);
      places = new DeviceBuffer[parts.length];
      long count = 0;
      StringJoiner name = new StringJoiner(", ", "grouped ", "");
      for (DeviceBuffer part : parts) {
        count += part.count();
        name.add(((AbstractDeviceBuffer) part).describe());
      }
      memory = Unclosed.exempt(device.allocate(parts[0].type(), count));
      device.await(memory); // it must be zeroed before another stream writes to it
      AbstractDeviceBuffer own =
          (AbstractDeviceBuffer) device.on(device.streamOf(parts[0]), memory);
      own.named(name.toString());
      own.elementsNamed(this::nameOf);
      packed = own;
      reduction = CollectiveCall.allReduce(packed, calls.get(0).op());
      long first = 0;
      for (int i = 0; i < parts.length; i++) {
        places[i] = packed.slice(first, parts[i].count());
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
      return device.streamOf(packed).isCapturing();
    }

    @Override
    public void run(CallRunner runner) {
      device.copyAll(parts, places);
      runner.run(reduction);
      device.copyAll(places, parts);
    }

    @Override
    public void close() {
      memory.close();
    }
  }
}

package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * A call whose blocks have counts of their own, made of calls that every reducer has: a message for
 * each block that moves, or a reduction to one rank for each block that is reduced. Prepared once
 * and run many times.
 *
 * <p>All ranks first compare their counts, so that none changes a buffer if they differ. An
 * all-to-all has different ones on each rank: all ranks only meet, so that none waits for one that
 * makes another call, and the two ranks of each message compare theirs.
 */
final class UnequalBlocks implements AutoCloseable {
  private static final Consumer<CollectiveCall> NOTHING = call -> {};

  private final ProcessGroup group;
  private final BackendDevice device;
  private final Reducer reducer;
  private final CollectiveCall comparison;
  private final List<CollectiveCall> reductions = new ArrayList<>();
  private final List<CollectiveCall> messages = new ArrayList<>();
  private DeviceBuffer ownSource; // this rank's own block, or null if it stays where it is
  private DeviceBuffer ownTarget;

  UnequalBlocks(ProcessGroup group, BackendDevice device, Reducer reducer, CollectiveCall call) {
    this.group = group;
    this.device = device;
    this.reducer = reducer;
    comparison = comparison(call);
    if (call.kind().reduces()) {
      addReductions(call);
    } else {
      addMessages(call);
    }
  }

  /**
   * The same kind of call on empty buffers: one that has the counts as its name, and one that has
   * the name of the output. Reductions compare that of the input.
   */
  private CollectiveCall comparison(CollectiveCall call) {
    AbstractDeviceBuffer named = device.allocate(call.buffer().type(), 0);
    AbstractDeviceBuffer out = (AbstractDeviceBuffer) call.out();
    boolean inPlace =
        call.kind() == Kind.REDUCE_SCATTER && out.overlaps((AbstractDeviceBuffer) call.in());
    // A part of the input has no name of its own.
    DeviceBuffer output = inPlace ? named : out == null ? null : out.slice(0, 0);
    if (call.kind() == Kind.ALL_TO_ALL) {
      named.named("counts of each pair");
    } else {
      long[] counts = call.inCounts() != null ? call.inCounts() : call.outCounts();
      String text =
          Arrays.stream(counts).mapToObj(Long::toString).collect(Collectors.joining(", "));
      named.named("counts " + text);
      named.use(Arrays.stream(counts).sum()); // for errors: there is nothing to copy
    }
    return new CollectiveCall(call.kind(), named, output, call.op(), call.root());
  }

  private void addReductions(CollectiveCall call) {
    long first = 0;
    for (int root = 0; root < group.size(); root++) {
      long count = call.inCounts()[root];
      if (count > 0) { // on all ranks or on none
        DeviceBuffer in = call.in().slice(first, count);
        DeviceBuffer out = root == group.rank() ? call.out() : null;
        reductions.add(new CollectiveCall(Kind.REDUCE, in, out, call.op(), root));
      }
      first += count;
    }
  }

  private void addMessages(CollectiveCall call) {
    // A sender's input and a receiver's output may have different names.
    String part = "part of " + call.kind().text();
    long sent = 0;
    long received = 0;
    for (int peer = 0; peer < group.size(); peer++) {
      DeviceBuffer in = null;
      DeviceBuffer out = null;
      if (call.in() != null && call.kind().hasOutput(peer, call.root())) {
        long count = call.inCounts() == null ? call.in().count() : call.inCounts()[peer];
        in = call.in().slice(sent, count).named(part);
        sent += call.inCounts() == null ? 0 : count;
      }
      if (call.out() != null && call.kind().hasInput(peer, call.root())) {
        out = call.out().slice(received, call.outCounts()[peer]).named(part);
        received += call.outCounts()[peer];
      }
      if (peer != group.rank()) {
        add(in, out, peer);
      } else if (in != null && out != null && !overlap(in, out)) {
        ownSource = in;
        ownTarget = out;
      }
    }
  }

  private void add(DeviceBuffer in, DeviceBuffer out, int peer) {
    if (in != null) {
      messages.add(CollectiveCall.send(in, peer));
    }
    if (out != null) {
      messages.add(CollectiveCall.receive(out, peer));
    }
  }

  private static boolean overlap(DeviceBuffer a, DeviceBuffer b) {
    return ((AbstractDeviceBuffer) a).overlaps((AbstractDeviceBuffer) b);
  }

  /** Runs the call, or one that is equal to it. */
  void run() {
    group.run(Origin.COUNTS, comparison, NOTHING);
    if (ownSource != null) {
      device.copy(ownSource, ownTarget);
    }
    for (CollectiveCall reduction : reductions) {
      reducer.run(reduction);
    }
    if (!messages.isEmpty()) {
      reducer.exchange(messages);
    }
  }

  @Override
  public void close() {
    List<DeviceBuffer> views = new ArrayList<>();
    reductions.forEach(reduction -> views.add(reduction.in()));
    messages.forEach(message -> views.add(message.buffer()));
    views.add(ownSource);
    views.add(ownTarget);
    views.add(comparison.in());
    views.add(comparison.out());
    Resources.closeAll(views);
  }
}

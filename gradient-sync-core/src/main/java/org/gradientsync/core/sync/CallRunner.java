package org.gradientsync.core.sync;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.Event;
import org.gradientsync.PendingAverage;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * Runs a sync's calls on the reducer, each after all checks of its arguments: those of the program,
 * alone or in a group, and those of buckets.
 */
final class CallRunner implements AutoCloseable {
  private final CallOrder order;
  private final ProcessGroup group;
  private final BackendDevice device;
  private final Reducer reducer;
  private final Observer observer;
  private final boolean finite;
  private final CollectiveArguments arguments;
  private final CallGroups groups;
  private final PlanCache<UnequalBlocks> unequal;
  private final CollectiveCall call = new CollectiveCall(); // guarded by the group
  private Event between; // the streams of an input and an output; or null
  private CallInterceptor interceptor; // or null

  CallRunner(Selection.Choice choice, CallOrder order, Observer observer) {
    this.order = order;
    this.observer = observer;
    group = choice.group();
    device = choice.device();
    reducer = choice.reducer();
    finite = choice.finite();
    arguments = new CollectiveArguments(group.ranks(), device);
    groups = new CallGroups(group, device, reducer);
    unequal = new PlanCache<>(group);
  }

  void intercept(CallInterceptor newInterceptor) {
    interceptor = newInterceptor;
  }

  CallInterceptor interceptor() {
    return interceptor;
  }

  /** The call to make instead of the program's; null if a test skips it. */
  private CollectiveCall intercepted(CollectiveCall asked) {
    return interceptor == null ? asked : interceptor.beforeCall(asked, group.size());
  }

  /** Makes a call of the program: records it for a group, or runs it. */
  void make(Kind kind, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    make(kind, in, out, op, root, null, null);
  }

  /** As above, with a count for each block of the input or the output, or null. */
  void make(
      Kind kind,
      DeviceBuffer in,
      DeviceBuffer out,
      ReduceOp op,
      int root,
      long[] inCounts,
      long[] outCounts) {
    boolean records = order.begin();
    if (interceptor == null && !records) {
      synchronized (group) {
        run(call.set(kind, in, out, op, root).counts(inCounts, outCounts));
      }
      return;
    }
    CollectiveCall given =
        intercepted(new CollectiveCall(kind, in, out, op, root).counts(inCounts, outCounts).copy());
    if (given == null) {
      return;
    }
    if (records) {
      arguments.require(given);
      order.record(given);
    } else {
      run(given);
    }
  }

  /** Starts an average of the program, on the communication thread if the reducer blocks. */
  PendingAverage start(DeviceBuffer buffer) {
    order.requireNotRecording();
    CollectiveCall average = CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE);
    if (!reducer.blocksHost()) {
      make(Kind.ALL_REDUCE, buffer, buffer, ReduceOp.AVERAGE, average.root());
      return () -> reducer.check(false);
    }
    arguments.require(average);
    return order.start(
        () -> {
          CollectiveCall given = intercepted(average);
          if (given != null) {
            run(given);
          }
        });
  }

  /** Makes the calls of a group of the program. */
  void grouped(Runnable calls) {
    if (order.isRecording()) {
      calls.run();
      return;
    }
    order.awaitTurn();
    List<CollectiveCall> recorded = order.recorded(calls);
    if (recorded.isEmpty()) {
      return;
    }
    order.awaitTurn();
    synchronized (group) {
      order.requireOpen();
      recorded.forEach(arguments::requireBuffers); // which may have been closed
      try {
        groups.of(recorded).run(this);
      } catch (DeviceException e) { // the other ranks would wait for what was not enqueued
        throw group.failed(e);
      }
    }
  }

  /** Broadcasts one buffer after the other. An interceptor sees one call. */
  void broadcast(List<? extends DeviceBuffer> buffers, int root) {
    for (int i = 0; i < buffers.size(); i++) {
      order.awaitTurn();
      CollectiveCall broadcast = CollectiveCall.broadcast(buffers.get(i), root);
      if (i == 0) {
        broadcast = intercepted(broadcast);
        if (broadcast == null) {
          return;
        }
      }
      run(broadcast);
    }
  }

  /** Prepares the averages of a buffer for the program. */
  void register(DeviceBuffer buffer) {
    order.awaitTurn();
    CollectiveCall given = intercepted(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
    if (given != null) {
      prepare(given);
    }
  }

  /** Prepares a call. */
  void prepare(CollectiveCall given) {
    order.awaitTurn();
    synchronized (group) {
      order.requireOpen();
      arguments.requireBuffers(given);
      reducer.prepare(given);
    }
  }

  /** Runs a call of buckets, which observe it themselves. */
  void runInTurn(CollectiveCall asked, Origin origin) {
    CollectiveCall given = intercepted(asked);
    if (given == null) {
      return;
    }
    synchronized (group) {
      check(given);
      Calls calls = group.parts().calls();
      calls.setOrigin(origin);
      try {
        reducer.run(given);
      } catch (RuntimeException | Error e) {
        group.matcher().found(-1); // as in run
        throw e;
      } finally {
        calls.setOrigin(Origin.SYNC);
      }
    }
  }

  /** Runs a call of the program, or of a {@code grouped} block, whose turn has come. */
  void run(CollectiveCall given) {
    synchronized (group) {
      check(given);
      try {
        if (given.kind() == Kind.ALL_REDUCE) {
          runObserved(given);
        } else if (given.in() == null
            || given.out() == null
            || device.streamOf(given.in()) == device.streamOf(given.out())) {
          runChecked(given);
        } else {
          runOnTwoStreams(given);
        }
      } catch (RuntimeException | Error e) {
        group.matcher().found(-1); // the call may have failed before it told the others
        throw e;
      }
    }
  }

  /** The caller has ordered the streams of input and output. */
  private void runChecked(CollectiveCall given) {
    if (given.hasCounts()) {
      unequal(given).run();
    } else {
      reducer.run(given);
    }
  }

  private UnequalBlocks unequal(CollectiveCall given) {
    UnequalBlocks blocks = unequal.get(given);
    if (blocks == null) {
      blocks = new UnequalBlocks(group, device, reducer, given);
      unequal.put(given, blocks);
    }
    return blocks;
  }

  /** The caller holds the lock until the call is made, so that no other thread closes a buffer. */
  private void check(CollectiveCall given) {
    order.requireOpen();
    arguments.require(given);
    if (!finite || given.op() == null || device.streamOf(given.in()).isCapturing()) {
      return;
    }
    if (given.kind() != Kind.ALL_REDUCE || !reducer.checksFinite()) {
      // The rendezvous exchanges the result, so that all ranks throw.
      group.matcher().found(device.firstNotFinite(given.in()));
    }
  }

  private void runObserved(CollectiveCall given) {
    Stream stream = device.streamOf(given.in());
    Observer.Observation observation = observer.begin(given.in(), stream, given.op(), -1);
    if (observation == null) {
      reducer.run(given);
      return;
    }
    try {
      observation.ready(stream);
      observation.starts(stream);
      reducer.run(given);
      observation.ends(stream);
    } catch (RuntimeException | Error e) {
      observation.forget();
      throw e;
    }
    observation.complete();
    observer.deliver(stream);
  }

  private void runOnTwoStreams(CollectiveCall given) {
    Stream from = device.streamOf(given.in());
    Stream to = device.streamOf(given.out());
    if (between == null) {
      between = device.createEvent(false);
    }
    between.record(from);
    to.waitFor(between);
    runChecked(given);
    between.record(to);
    from.waitFor(between);
  }

  @Override
  public void close() {
    Resources.closeAll(groups, unequal, between);
  }
}

package org.gradientsync.tools.perf;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * A collective at one size, as {@link PerfProgram} measures it: single ones, or a CUDA graph of
 * several. All methods are collective.
 */
class TimedCase implements AutoCloseable {
  /** The number of collectives in a graph. */
  static final int IN_GRAPH = 10;

  private static final int HOST_CALLS = 100; // few enough to fit into a GPU's queue

  private final GradientSync sync;
  private final BackendDevice device;
  private final PerfCollective collective;
  private final Setup setup;
  private final long count;
  private final boolean inPlace;
  private final PerfNumbers numbers;
  private final DeviceBuffer larger; // of the two buffers, or the only one
  private final DeviceBuffer smaller; // may be a part of the larger one
  private final DeviceBuffer in;
  private final DeviceBuffer out;
  private final Stream[] streams; // beside other work, two that alternate; otherwise none
  private final DeviceBuffer byTurns; // the output on the other stream, or null
  private final Runnable callGroup = this::callGroup;
  private final DeviceBuffer[] group; // parts of the output, for a grouped call
  private final Stream stream; // on which the time is taken
  private final Event start;
  private final Event end;
  private CudaGraph graph;
  private boolean odd;

  /**
   * What all cases of a program have in common.
   *
   * @param wire the type in which FLOAT32 elements of an all-reduce travel, or null
   * @param beside whether an all-reduce leaves room for other work on a GPU
   * @param asGraph whether {@link #capture} captures several into a CUDA graph
   */
  record Setup(DataType type, ReduceOp op, DataType wire, boolean beside, boolean asGraph) {}

  /**
   * Creates a case.
   *
   * @param count the elements of a part, as {@link PerfCollective#count} gives it
   */
  TimedCase(
      GradientSync sync, PerfCollective collective, Setup setup, long count, boolean inPlace) {
    this.sync = sync;
    this.collective = collective;
    this.setup = setup;
    this.count = count;
    this.inPlace = inPlace;
    device = (BackendDevice) sync.device();
    numbers = new PerfNumbers(setup.type(), setup.op(), sync.size(), setup.wire());
    int inputParts = collective.kind().inputBlocks(sync.size());
    int outputParts = collective.kind().outputBlocks(sync.size());
    larger = sync.allocate(setup.type(), count * Math.max(inputParts, outputParts));
    smaller =
        !inPlace
            ? sync.allocate(setup.type(), count * Math.min(inputParts, outputParts))
            : inputParts == outputParts ? larger : larger.slice(sync.rank() * count, count);
    streams = new Stream[setup.beside() ? 2 : 0];
    if (setup.beside()) {
      streams[0] = device.createStream(true);
      streams[1] = device.createStream(true);
      device.await(larger);
      out = device.on(streams[0], larger);
      in = inPlace ? out : smaller;
      byTurns = inPlace ? device.on(streams[1], larger) : null;
    } else {
      out = inputParts > outputParts ? smaller : larger;
      in = inputParts > outputParts ? larger : smaller;
      byTurns = null;
    }
    group = collective.group() > 1 ? parts(out, collective.group()) : new DeviceBuffer[0];
    stream = device.streamOf(out);
    start = device.createEvent(true);
    end = device.createEvent(true);
    refill();
  }

  /** Enqueues one collective. The library reduces and broadcasts in place. */
  void enqueue() {
    if (!inPlace && collective.copiesFirst(sync.rank())) {
      device.copy(in, out);
    }
    if (group.length > 0) {
      sync.grouped(callGroup);
    } else {
      collective.call().make(sync, in, out, setup.op());
    }
  }

  private static DeviceBuffer[] parts(DeviceBuffer buffer, int most) {
    DeviceBuffer[] parts = new DeviceBuffer[(int) Math.min(most, buffer.count())];
    long first = 0;
    for (int i = 0; i < parts.length; i++) {
      long end = (i + 1) * buffer.count() / parts.length;
      parts[i] = buffer.slice(first, end - first);
      first = end;
    }
    return parts;
  }

  private void callGroup() {
    for (DeviceBuffer part : group) {
      collective.call().make(sync, part, part, setup.op());
    }
  }

  /** Makes one call: a collective, or a graph of several. */
  private void call() {
    if (graph == null) {
      enqueue();
    } else {
      graph.launch((CudaStream) stream);
    }
  }

  /** Makes a call whose time is not taken: on two streams by turns, as buckets' averages are. */
  private void callByTurns() {
    if (byTurns == null || graph != null) {
      call();
    } else {
      odd = !odd;
      sync.allReduce(odd ? byTurns : out, setup.op());
    }
  }

  private int inOneCall() {
    return graph == null ? 1 : IN_GRAPH;
  }

  /**
   * From now on runs a graph in each call, if that was asked for. The collective must have been
   * enqueued before.
   */
  final void capture() {
    if (!setup.asGraph()) {
      return;
    }
    CudaStream captured = (CudaStream) stream;
    sync.barrier();
    captured.beginCapture();
    try {
      for (int i = 0; i < IN_GRAPH; i++) {
        enqueue();
      }
    } catch (RuntimeException e) {
      try {
        captured.endCapture().close();
      } catch (RuntimeException consequence) {
        e.addSuppressed(consequence);
      }
      throw e;
    }
    graph = captured.endCapture();
    sync.barrier(); // on a shared GPU, making the graph may wait for another rank's kernel
    call();
    stream.await();
  }

  /** Waits until all work is done. */
  private void await() {
    stream.await();
    for (Stream each : streams) {
      each.await();
    }
  }

  final void warmUp(int times) {
    for (int i = 0; i < times; i++) {
      callByTurns();
    }
    await();
  }

  private int calls(int collectives) {
    return (collectives + inOneCall() - 1) / inOneCall();
  }

  /**
   * Makes collectives in a row, and returns the microseconds for each by the device's clock: the
   * mean over the ranks.
   */
  final double round(int collectives) {
    int calls = calls(collectives);
    stream.await();
    sync.barrier();
    start.record(stream);
    for (int i = 0; i < calls; i++) {
      call();
    }
    end.record(stream);
    end.await();
    return mean(start.millisecondsTo(end) * 1e3 / calls / inOneCall());
  }

  /**
   * Returns what a collective costs the calling thread, without waiting for a GPU; means over the
   * ranks.
   */
  final HostCost hostCost(int collectives) {
    int calls = Math.min(HOST_CALLS, calls(collectives));
    await();
    sync.barrier();
    HostCost own = HostCost.of(calls, this::callByTurns).dividedBy(inOneCall());
    await();
    return new HostCost(mean(own.cpuNanos()), mean(own.wallNanos()), mean(own.bytes()));
  }

  /** Makes a call on new numbers, and counts the wrong elements on all ranks. */
  final long wrong() {
    stream.await();
    refill();
    if (inPlace && collective.reduces() && collective.kind() != Kind.ALL_REDUCE) {
      enqueue(); // a graph would reduce what it has reduced, together with what it has not
    } else {
      call();
    }
    long[] wrong = {wrongHere()};
    sync.communicator().allReduce(LongBuffer.wrap(wrong), ReduceOp.SUM);
    return wrong[0];
  }

  private void refill() {
    numbers.fill(out, sync.size()); // no rank's numbers, which a call that does nothing would leave
    numbers.fill(in, sync.rank());
  }

  private long wrongHere() {
    Kind kind = collective.kind();
    if (kind.hasRoot() && !kind.hasOutput(sync.rank(), PerfCollective.ROOT)) {
      return numbers.wrong(in, index -> numbers.bits(sync.rank(), index)); // it must not change
    }
    return numbers.wrong(out, this::expected);
  }

  private long expected(long index) {
    Kind kind = collective.kind();
    long first = kind.inputBlocks(sync.size()) > 1 ? sync.rank() * count : 0;
    long position = first + index % count;
    if (kind.reduces()) {
      return numbers.reduced(position, kind == Kind.ALL_REDUCE && inPlace ? inOneCall() : 1);
    }
    int source =
        kind.outputBlocks(sync.size()) > 1
            ? (int) (index / count)
            : kind.hasRoot() ? PerfCollective.ROOT : PerfCollective.previous(sync);
    return numbers.bits(source, position);
  }

  private double mean(double own) {
    double[] sum = {own};
    sync.communicator().allReduce(DoubleBuffer.wrap(sum), ReduceOp.SUM);
    return sum[0] / sync.size();
  }

  @Override
  public void close() {
    stream.await();
    if (graph != null) {
      graph.close();
    }
    end.close();
    start.close();
    for (DeviceBuffer part : group) {
      part.close();
    }
    if (smaller != larger) {
      smaller.close();
    }
    larger.close();
    for (Stream each : streams) {
      each.close();
    }
  }
}

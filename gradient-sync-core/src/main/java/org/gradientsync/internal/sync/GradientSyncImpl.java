package org.gradientsync.internal.sync;

import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.Event;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.Synchronization;
import org.gradientsync.internal.buckets.BucketSync;
import org.gradientsync.internal.buckets.BucketsBuilder;
import org.gradientsync.internal.buckets.CommunicationThread;
import org.gradientsync.internal.collectives.GroupCommunicator;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.observation.Observer;
import org.gradientsync.internal.selection.Selection;
import org.gradientsync.internal.sync.RecordedCall.Kind;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank's sync: it runs the program's calls one after the other, on the reducer. */
final class GradientSyncImpl extends GradientSync implements BucketSync, CallGroup.Runner {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);

  private final Selection selection;
  private final GradientSyncImpl parent; // or null; it owns the device
  private final Set<GradientSyncImpl> parts = new LinkedHashSet<>(); // guarded by itself
  private final GroupCommunicator communicator;
  private final ProcessGroup group;
  private final BackendDevice device;
  private final Reducer reducer;
  private final Observer observer;
  private final DataType wire;
  private final boolean finite;
  private final Map<String, String> alternatives;
  private final ThreadLocal<List<RecordedCall>> recording = new ThreadLocal<>();
  private final CallGroups groups;
  private final ArrayAverages arrays = new ArrayAverages(this);
  private Event order; // between the streams of an input and an output; or null
  private CallInterceptor interceptor; // or null
  private Communicator
      programCommunicator; // the program's view of the communicator, possibly wrapped
  private final Unclosed unclosed;
  private volatile CommunicationThread thread;
  private volatile boolean closed;
  private int bucketsBuilt;

  /**
   * @param parent the sync that this one is a part of, or null
   */
  GradientSyncImpl(Selection selection, Selection.Choice choice, GradientSyncImpl parent) {
    this.selection = selection;
    this.parent = parent;
    group = choice.group();
    communicator = choice.communicator();
    device = choice.device();
    reducer = choice.reducer();
    wire = choice.wire();
    finite = choice.finite();
    alternatives = Collections.unmodifiableMap(choice.alternatives());
    observer = new Observer(device, reducer.name(), group.worldRank());
    groups = new CallGroups(group, device);
    programCommunicator = communicator;
    communicator.beforeEachCall(this::awaitThread);
    unclosed = Unclosed.watch(this, "sync of rank " + rank() + " of " + size());
  }

  @Override
  public DeviceBuffer allocate(DataType type, long count) {
    requireOpen();
    return watched(device.allocate(type, count));
  }

  @Override
  public DeviceBuffer wrap(DataType type, ByteBuffer memory) {
    requireOpen();
    if (device instanceof HostDevice host) {
      return watched(host.wrap(type, memory));
    }
    throw new IllegalArgumentException(
        "host memory cannot be wrapped on this device: device="
            + device.kind()
            + ", rank="
            + rank());
  }

  private static DeviceBuffer watched(DeviceBuffer buffer) {
    ((AbstractDeviceBuffer) buffer).warnIfNeverClosed();
    return buffer;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    Objects.requireNonNull(op, "op");
    beginCall();
    DeviceBuffer given = intercepted(buffer);
    if (given == null) {
      return;
    }
    if (isRecording()) {
      requireOwn(given);
      op.requireDefinedFor(given.type());
      record(new RecordedCall(Kind.ALL_REDUCE, null, given, null, op, RankGroup.NO_RANK));
    } else {
      reduce(given, op);
    }
  }

  @Override
  public void average(float[] array) {
    Objects.requireNonNull(array, "array");
    awaitTurn();
    arrays.average(array);
  }

  @Override
  public void average(double[] array) {
    Objects.requireNonNull(array, "array");
    awaitTurn();
    arrays.average(array);
  }

  @Override
  public void grouped(Runnable calls) {
    Objects.requireNonNull(calls, "calls");
    if (isRecording()) {
      calls.run();
      return;
    }
    awaitTurn();
    List<RecordedCall> recorded = new ArrayList<>();
    recording.set(recorded);
    try {
      calls.run();
    } finally {
      recording.remove();
    }
    if (!recorded.isEmpty()) {
      awaitTurn();
      synchronized (group) {
        for (RecordedCall call : recorded) {
          requireOwnIfAny(call.in());
          requireOwnIfAny(call.out());
        }
        try {
          groups.of(recorded).run(this);
        } catch (DeviceException e) { // the other ranks would wait for what was not enqueued
          throw group.lost("the call failed in the middle: " + e, e);
        }
      }
    }
  }

  private boolean isRecording() {
    return recording.get() != null;
  }

  private void record(RecordedCall call) {
    recording.get().add(call);
  }

  /** Begins a call of the program that can be a part of a group. */
  private void beginCall() {
    if (isRecording()) {
      requireOpen();
      requireNoListener();
    } else {
      awaitTurn();
    }
  }

  /** Runs a call of a group. */
  @Override
  public void run(RecordedCall call) {
    switch (call.kind()) {
      case ALL_REDUCE -> reduce(call.in(), call.op());
      case BROADCAST -> broadcastOwn(call.in(), call.rank());
      default -> runOwn(call.collective(), call.in(), call.out(), call.op(), call.rank());
    }
  }

  /** Reduces packed buffers of a group. */
  @Override
  public void reducePacked(DeviceBuffer packed, ReduceOp op) {
    reduce(packed, op);
  }

  /** Exchanges the messages of a group. */
  @Override
  public void exchange(List<PeerMessage> messages) {
    reducer.exchange(messages);
  }

  private void reduce(DeviceBuffer buffer, ReduceOp op) {
    synchronized (group) { // so that no other thread closes the buffer after the checks
      requireOwn(buffer);
      op.requireDefinedFor(buffer.type());
      checkFinite(buffer);
      Stream stream = device.streamOf(buffer);
      Observer.Observation observation = observer.begin(buffer, stream, op, -1);
      if (observation == null) {
        reducer.allReduce(buffer, op);
        return;
      }
      try {
        observation.ready(stream);
        observation.starts(stream);
        reducer.allReduce(buffer, op);
        observation.ends(stream);
      } catch (RuntimeException | Error e) {
        observation.forget();
        throw e;
      }
      observation.complete();
      observer.deliver(stream);
    }
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out) {
    run(Collective.ALL_GATHER, in, out, null, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    run(Collective.REDUCE_SCATTER, in, out, Objects.requireNonNull(op, "op"), RankGroup.NO_RANK);
  }

  @Override
  public void reduce(DeviceBuffer buffer, ReduceOp op, int root) {
    run(Collective.REDUCE, buffer, buffer, Objects.requireNonNull(op, "op"), root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, int root) {
    run(Collective.GATHER, in, out, null, root);
  }

  @Override
  public void scatter(DeviceBuffer in, DeviceBuffer out, int root) {
    run(Collective.SCATTER, in, out, null, root);
  }

  @Override
  public void allToAll(DeviceBuffer in, DeviceBuffer out) {
    run(Collective.ALL_TO_ALL, in, out, null, RankGroup.NO_RANK);
  }

  private void run(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (collective.hasRoot()) {
      group.ranks().require(root, "root");
    }
    DeviceBuffer input =
        collective.hasInput(rank(), root) ? Objects.requireNonNull(in, "in") : null;
    DeviceBuffer output =
        collective.hasOutput(rank(), root) ? Objects.requireNonNull(out, "out") : null;
    beginCall();
    make(collective, input, output, op, root, isRecording());
  }

  /** Makes a call that the interceptor sees: records it for a group, or runs it. */
  private void make(
      Collective collective,
      DeviceBuffer input,
      DeviceBuffer output,
      ReduceOp op,
      int root,
      boolean records) {
    DeviceBuffer first = input != null ? input : output;
    DeviceBuffer given = intercepted(first);
    if (given == null) {
      return;
    }
    DeviceBuffer from = input;
    DeviceBuffer to = output;
    if (given != first) { // a mismatch that a test has injected: one element less in each block
      int inputBlocks = collective.inputBlocks(size());
      int outputBlocks = collective.outputBlocks(size());
      from = oneLess(input, inputBlocks);
      to = oneLess(output, outputBlocks);
      if (isInPlace(input, output) && inputBlocks > outputBlocks) {
        to = from.slice(rank() * to.count(), to.count());
      } else if (isInPlace(input, output) && outputBlocks > inputBlocks) {
        from = to.slice(rank() * from.count(), from.count());
      }
    }
    if (records) {
      requireArguments(collective, from, to, op);
      record(new RecordedCall(Kind.COLLECTIVE, collective, from, to, op, root));
    } else {
      runOwn(collective, from, to, op, root);
    }
  }

  private static boolean isInPlace(DeviceBuffer in, DeviceBuffer out) {
    return in != null
        && out != null
        && ((AbstractDeviceBuffer) in).overlaps((AbstractDeviceBuffer) out);
  }

  private static DeviceBuffer oneLess(DeviceBuffer buffer, int blocks) {
    return buffer == null ? null : buffer.slice(0, buffer.count() - blocks);
  }

  private void runOwn(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    synchronized (group) { // so that no other thread closes a buffer after the checks
      requireArguments(collective, in, out, op);
      if (finite && op != null && !device.streamOf(in).isCapturing()) {
        group.found(device.firstNotFinite(in));
      }
      if (in == null || out == null || device.streamOf(in) == device.streamOf(out)) {
        reducer.run(collective, in, out, op, root);
        return;
      }
      Stream from = device.streamOf(in);
      Stream to = device.streamOf(out);
      Event order = order();
      order.record(from);
      to.waitFor(order);
      reducer.run(collective, in, out, op, root);
      order.record(to);
      from.waitFor(order);
    }
  }

  private void requireArguments(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    requireOwnIfAny(in);
    requireOwnIfAny(out);
    if (op != null) {
      op.requireDefinedFor(in.type());
    }
    CollectiveArguments.require(collective, in, out, rank(), size());
  }

  private Event order() {
    if (order == null) {
      order = device.createEvent(false);
    }
    return order;
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    message(buffer, peer, true);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    message(buffer, peer, false);
  }

  private void message(DeviceBuffer buffer, int peer, boolean sends) {
    group.ranks().require(peer, "peer");
    if (peer == rank()) {
      throw new IllegalArgumentException("a rank cannot send to itself: peer=" + peer);
    }
    beginCall();
    DeviceBuffer given = intercepted(buffer);
    if (given == null) {
      return;
    }
    if (isRecording()) {
      requireOwn(given);
      record(new RecordedCall(sends ? Kind.SEND : Kind.RECEIVE, null, given, null, null, peer));
      return;
    }
    synchronized (group) {
      requireOwn(given);
      if (sends) {
        reducer.send(given, peer);
      } else {
        reducer.receive(given, peer);
      }
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    beginCall();
    DeviceBuffer given = intercepted(buffer);
    if (given == null) {
      return;
    }
    if (isRecording()) {
      requireOwn(given);
      group.ranks().require(root, "root");
      record(new RecordedCall(Kind.BROADCAST, null, given, null, null, root));
    } else {
      broadcastOwn(given, root);
    }
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> buffers, int root) {
    awaitTurn();
    DeviceBuffer first = intercepted(buffers.get(0));
    if (first == null) {
      return;
    }
    broadcastOwn(first, root);
    for (DeviceBuffer buffer : buffers.subList(1, buffers.size())) {
      awaitTurn();
      broadcastOwn(buffer, root);
    }
  }

  private void broadcastOwn(DeviceBuffer buffer, int root) {
    synchronized (group) {
      requireOwn(buffer);
      if (root < 0 || root >= size()) {
        throw new IllegalArgumentException(
            "no such rank: root=" + root + ", size=" + size() + ", rank=" + rank());
      }
      reducer.broadcast(buffer, root);
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    awaitTurn();
    DeviceBuffer given = intercepted(buffer);
    if (given != null) {
      prepare(given);
    }
  }

  @Override
  public void prepare(DeviceBuffer buffer) {
    awaitTurn();
    synchronized (group) {
      requireOwn(buffer);
      reducer.register(buffer);
    }
  }

  @Override
  public void prepareShard(DeviceBuffer in, DeviceBuffer shard) {
    prepare(Collective.REDUCE_SCATTER, in, shard, ReduceOp.AVERAGE);
  }

  @Override
  public void prepareGather(DeviceBuffer shard, DeviceBuffer out) {
    prepare(Collective.ALL_GATHER, shard, out, null);
  }

  private void prepare(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    awaitTurn();
    synchronized (group) {
      requireArguments(collective, in, out, op);
      reducer.register(collective, in, out, op, RankGroup.NO_RANK);
    }
  }

  @Override
  public double mean(double value) {
    requireOpen();
    double[] average = {value};
    communicator.compose(
        Call.Kind.MEAN,
        () -> programCommunicator.allReduce(DoubleBuffer.wrap(average), ReduceOp.AVERAGE));
    return average[0];
  }

  @Override
  public void barrier() {
    requireOpen();
    programCommunicator.barrier();
  }

  @Override
  public GradientSync split(int color, int key) {
    awaitTurn();
    ProcessGroup ranks = group.split(Call.Kind.SYNC_SPLIT, color, key, group.timeouts());
    if (ranks == null) {
      return null;
    }
    Selection.Choice choice = selection.choose(ranks, device);
    GradientSyncImpl part;
    try {
      part = new GradientSyncImpl(selection, choice, this);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, choice.reducer(), choice.communicator());
      throw e;
    }
    if (interceptor != null) {
      part.useInterceptor(interceptor);
    }
    synchronized (parts) {
      parts.add(part);
    }
    if (closed) { // by another thread, which may have missed the new part
      part.close();
    }
    return part;
  }

  @Override
  public int rank() {
    return communicator.rank();
  }

  @Override
  public int size() {
    return communicator.size();
  }

  @Override
  public int localRank() {
    return communicator.localRank();
  }

  @Override
  public int localSize() {
    return communicator.localSize();
  }

  @Override
  public Device device() {
    return device;
  }

  @Override
  public String reducer() {
    return reducer.name();
  }

  @Override
  public Map<String, String> alternatives() {
    return alternatives;
  }

  @Override
  public Optional<DataType> wire() {
    return Optional.ofNullable(wire);
  }

  @Override
  public String launcher() {
    return group.transport().name();
  }

  @Override
  public Communicator communicator() {
    return programCommunicator;
  }

  @Override
  public Communicator ownCommunicator() {
    return communicator;
  }

  @Override
  public void compose(Call.Kind call, Runnable parts) {
    communicator.compose(call, parts);
  }

  @Override
  public Event observe(Consumer<Synchronization> listener) {
    Objects.requireNonNull(listener, "listener");
    requireOpen();
    return observer.listen(listener);
  }

  @Override
  public void close() {
    CommunicationThread running = thread;
    if (running != null) {
      running.close();
    }
    closeParts(); // with no lock held, because it waits for the parts' running calls
    Resources.closeAll(this::closeOwn, arrays); // in this order: calls hold the arrays' lock first
  }

  private void closeOwn() {
    synchronized (group) {
      if (closed) {
        return;
      }
      closed = true;
      unclosed.closed();
      Resources.closeAll(
          this::closeParts, // those that were made meanwhile
          groups,
          reducer, // which waits for the work enqueued on the device
          this::report,
          order,
          communicator,
          parent == null ? device : () -> parent.forget(this));
    }
  }

  private void closeParts() {
    List<GradientSyncImpl> open;
    synchronized (parts) {
      open = List.copyOf(parts);
    }
    Resources.closeAll(open);
  }

  private void forget(GradientSyncImpl part) {
    synchronized (parts) {
      parts.remove(part);
    }
  }

  /** Logs one line for the job, as at the start. The lines of parts are for debugging. */
  private void report() {
    try {
      observer.close();
    } catch (RuntimeException e) {
      log.debug("rank {}: the last times cannot be had", rank(), e); // the device has failed
    }
    String summary = observer.summary();
    if (summary.isEmpty()) {
      return;
    } else if (rank() == 0 && parent == null) {
      log.info("rank 0 of {}: {}", size(), summary);
    } else {
      log.debug("rank {} of {}: {}", rank(), size(), summary);
    }
  }

  @Override
  public Observer observer() {
    return observer;
  }

  @Override
  public BackendDevice backend() {
    return device;
  }

  @Override
  public void meetForDiscard() {
    communicator.barrier(Call.Kind.DISCARD);
  }

  @Override
  public int nextBuckets() {
    synchronized (group) {
      return ++bucketsBuilt;
    }
  }

  @Override
  public boolean blocksHost() {
    return reducer.blocksHost();
  }

  @Override
  public void check(boolean together) {
    reducer.check(together);
  }

  @Override
  public CommunicationThread communicationThread() {
    synchronized (group) {
      requireOpen();
      if (thread == null) {
        thread = new CommunicationThread(rank());
      }
      return thread;
    }
  }

  @Override
  public void awaitTurn() {
    requireOpen();
    awaitThread();
  }

  @Override
  public void requireNoListener() {
    observer.requireNoListener(rank());
  }

  private void awaitThread() {
    requireNoListener();
    if (isRecording()) {
      throw new IllegalStateException(
          "this call cannot be a part of a group: rank=" + rank() + "; make it outside of grouped");
    }
    CommunicationThread running = thread;
    if (running != null) {
      running.awaitAll();
    }
  }

  @Override
  public void averageInOrder(DeviceBuffer buffer) {
    DeviceBuffer given = intercepted(buffer);
    if (given == null) {
      return;
    }
    synchronized (group) {
      requireOwn(given);
      checkFinite(given);
      reducer.allReduce(given, ReduceOp.AVERAGE);
    }
  }

  @Override
  public void averageShardInOrder(DeviceBuffer in, DeviceBuffer shard) {
    make(Collective.REDUCE_SCATTER, in, shard, ReduceOp.AVERAGE, RankGroup.NO_RANK, false);
  }

  @Override
  public void gatherInOrder(DeviceBuffer shard, DeviceBuffer out) {
    make(Collective.ALL_GATHER, shard, out, null, RankGroup.NO_RANK, false);
  }

  void intercept(CallInterceptor newInterceptor) {
    useInterceptor(newInterceptor);
    device.intercept(newInterceptor);
  }

  private void useInterceptor(CallInterceptor newInterceptor) {
    interceptor = newInterceptor;
    programCommunicator = newInterceptor.around(communicator, this::awaitThread);
  }

  /** The buffer for the program's call, or null to skip the call. */
  private DeviceBuffer intercepted(DeviceBuffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    return interceptor == null ? buffer : interceptor.beforeCall(buffer);
  }

  /** The rendezvous exchanges the result, so that all ranks throw. */
  private void checkFinite(DeviceBuffer buffer) {
    if (finite && !reducer.checksFinite()) {
      group.found(device.firstNotFinite(buffer));
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("sync is closed: rank=" + rank());
    }
  }

  private void requireOwnIfAny(DeviceBuffer buffer) {
    if (buffer != null) {
      requireOwn(buffer);
    }
  }

  private void requireOwn(DeviceBuffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    requireOpen();
    if (buffer.device() != device) {
      throw new IllegalArgumentException(
          "buffer belongs to another sync: buffer=" + buffer + ", rank=" + rank());
    }
    if (((AbstractDeviceBuffer) buffer).isClosed()) {
      throw new IllegalStateException("buffer is closed: buffer=" + buffer + ", rank=" + rank());
    }
  }

  @Override
  protected GradientBuckets.Builder newBuckets(List<Parameter> parameters) {
    return new BucketsBuilder(this, parameters);
  }
}

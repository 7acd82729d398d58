package org.gradientsync.core.sync;

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
import org.gradientsync.core.buckets.BucketSync;
import org.gradientsync.core.buckets.BucketsBuilder;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.Call.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
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
  private final ThreadLocal<List<CollectiveCall>> recording = new ThreadLocal<>();
  private final CallGroups groups;
  private final ArrayAverages arrays = new ArrayAverages(this);
  private final CollectiveCall call = new CollectiveCall(); // guarded by the group
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
    Objects.requireNonNull(buffer, "buffer");
    make(Kind.ALL_REDUCE, buffer, buffer, Objects.requireNonNull(op, "op"), RankGroup.NO_RANK);
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
    List<CollectiveCall> recorded = new ArrayList<>();
    recording.set(recorded);
    try {
      calls.run();
    } finally {
      recording.remove();
    }
    if (!recorded.isEmpty()) {
      awaitTurn();
      synchronized (group) {
        for (CollectiveCall one : recorded) {
          requireOwnBuffers(one);
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

  /** Begins a call of the program that can be a part of a group. */
  private void beginCall() {
    if (isRecording()) {
      requireOpen();
      requireNoListener();
    } else {
      awaitTurn();
    }
  }

  /** Exchanges the messages of a group. */
  @Override
  public void exchange(List<CollectiveCall> messages) {
    reducer.exchange(messages);
  }

  /** Makes a call of the program: records it for a group, or runs it. */
  private void make(Kind kind, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    beginCall();
    if (interceptor != null) {
      makeIntercepted(new CollectiveCall(kind, in, out, op, root), isRecording());
    } else if (isRecording()) {
      record(new CollectiveCall(kind, in, out, op, root));
    } else {
      synchronized (group) {
        run(call.set(kind, in, out, op, root));
      }
    }
  }

  private void makeIntercepted(CollectiveCall asked, boolean records) {
    CollectiveCall given = interceptor.beforeCall(asked, size());
    if (given == null) {
      return; // a test skips this call
    }
    if (records) {
      record(given);
    } else {
      run(given);
    }
  }

  private void record(CollectiveCall recorded) {
    requireArguments(recorded);
    recording.get().add(recorded);
  }

  /** Runs a call with whatever the program, or a group of calls, asks for. */
  @Override
  public void run(CollectiveCall given) {
    synchronized (group) { // so that no other thread closes a buffer after the checks
      requireArguments(given);
      checkFinite(given);
      if (given.kind() == Kind.ALL_REDUCE) {
        runObserved(given);
      } else if (given.in() == null
          || given.out() == null
          || device.streamOf(given.in()) == device.streamOf(given.out())) {
        reducer.run(given);
      } else {
        runOnTwoStreams(given);
      }
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
    Event event = order();
    event.record(from);
    to.waitFor(event);
    reducer.run(given);
    event.record(to);
    from.waitFor(event);
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_GATHER, in, out, null, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    blocks(Kind.REDUCE_SCATTER, in, out, Objects.requireNonNull(op, "op"), RankGroup.NO_RANK);
  }

  @Override
  public void reduce(DeviceBuffer buffer, ReduceOp op, int root) {
    blocks(Kind.REDUCE, buffer, buffer, Objects.requireNonNull(op, "op"), root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.GATHER, in, out, null, root);
  }

  @Override
  public void scatter(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.SCATTER, in, out, null, root);
  }

  @Override
  public void allToAll(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_TO_ALL, in, out, null, RankGroup.NO_RANK);
  }

  /** Makes a call with an input and an output, of which a rank may have one. */
  private void blocks(Kind kind, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (kind.hasRoot()) {
      group.ranks().require(root, "root");
    }
    DeviceBuffer input = kind.hasInput(rank(), root) ? Objects.requireNonNull(in, "in") : null;
    DeviceBuffer output = kind.hasOutput(rank(), root) ? Objects.requireNonNull(out, "out") : null;
    make(kind, input, output, op, root);
  }

  private void requireArguments(CollectiveCall given) {
    requireOwnBuffers(given);
    if (given.op() != null) {
      given.op().requireDefinedFor(given.in().type());
    }
    if (given.kind().hasRoot()) {
      group.ranks().require(given.root(), "root");
    }
    CollectiveArguments.require(given, rank(), size());
  }

  private Event order() {
    if (order == null) {
      order = device.createEvent(false);
    }
    return order;
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    requirePeer(peer);
    make(Kind.SEND, Objects.requireNonNull(buffer, "buffer"), null, null, peer);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    requirePeer(peer);
    make(Kind.RECEIVE, null, Objects.requireNonNull(buffer, "buffer"), null, peer);
  }

  private void requirePeer(int peer) {
    group.ranks().require(peer, "peer");
    if (peer == rank()) {
      throw new IllegalArgumentException("a rank cannot send to itself: peer=" + peer);
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    Objects.requireNonNull(buffer, "buffer");
    make(Kind.BROADCAST, buffer, buffer, null, root);
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> buffers, int root) {
    for (int i = 0; i < buffers.size(); i++) {
      awaitTurn();
      CollectiveCall broadcast = CollectiveCall.broadcast(buffers.get(i), root);
      if (i == 0 && interceptor != null) { // which sees one call
        broadcast = interceptor.beforeCall(broadcast, size());
        if (broadcast == null) {
          return;
        }
      }
      run(broadcast);
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    awaitTurn();
    CollectiveCall average = CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE);
    CollectiveCall given = interceptor == null ? average : interceptor.beforeCall(average, size());
    if (given != null) {
      prepare(given);
    }
  }

  @Override
  public void prepare(CollectiveCall given) {
    awaitTurn();
    synchronized (group) {
      requireOwnBuffers(given);
      CollectiveArguments.require(given, rank(), size());
      reducer.prepare(given);
    }
  }

  @Override
  public double mean(double value) {
    requireOpen();
    double[] average = {value};
    communicator.compose(
        Origin.MEAN,
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
    ProcessGroup ranks = group.split(Origin.SYNC_SPLIT, color, key, group.timeouts());
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
  public void compose(Origin call, Runnable parts) {
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
    communicator.barrier(Origin.DISCARD);
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
  public void runInOrder(CollectiveCall given) {
    CollectiveCall call = interceptor == null ? given : interceptor.beforeCall(given, size());
    if (call == null) {
      return; // a test skips this call
    }
    synchronized (group) {
      requireArguments(call);
      checkFinite(call);
      reducer.run(call);
    }
  }

  void intercept(CallInterceptor newInterceptor) {
    useInterceptor(newInterceptor);
    device.intercept(newInterceptor);
  }

  private void useInterceptor(CallInterceptor newInterceptor) {
    interceptor = newInterceptor;
    programCommunicator = newInterceptor.around(communicator, this::awaitThread);
  }

  /** The rendezvous exchanges the result, so that all ranks throw. */
  private void checkFinite(CollectiveCall given) {
    if (!finite || given.op() == null || device.streamOf(given.in()).isCapturing()) {
      return;
    }
    if (given.kind() != Kind.ALL_REDUCE || !reducer.checksFinite()) {
      group.matcher().found(device.firstNotFinite(given.in()));
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("sync is closed: rank=" + rank());
    }
  }

  private void requireOwnBuffers(CollectiveCall given) {
    if (given.in() != null) {
      requireOwn(given.in());
    }
    if (given.out() != null && given.out() != given.in()) {
      requireOwn(given.out());
    }
  }

  private void requireOwn(DeviceBuffer buffer) {
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

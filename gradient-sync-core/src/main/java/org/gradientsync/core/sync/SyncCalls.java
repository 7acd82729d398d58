package org.gradientsync.core.sync;

import java.nio.DoubleBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientSync;
import org.gradientsync.PendingAverage;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.gradientsync.Synchronization;
import org.gradientsync.core.buckets.BucketSync;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * The calls of a sync, for the chosen group, device and reducer. Each call of the program begins
 * here, and a {@link CallRunner} runs it.
 */
abstract class SyncCalls extends GradientSync implements BucketSync {
  final Selection.Choice choice;
  final Observer observer;
  final CallOrder order;
  final CallRunner runner;
  private final AtomicInteger bucketsBuilt = new AtomicInteger();
  private final ArrayAverages arrays = new ArrayAverages(this);
  private final SparseAverages sparse;
  private Communicator communicator; // as the program sees it

  SyncCalls(Selection.Choice choice) {
    this.choice = choice;
    observer = new Observer(choice.device(), choice.reducer().name(), choice.group().worldRank());
    order = new CallOrder(rank(), choice.communicator()::giveUp, observer);
    runner = new CallRunner(choice, order, observer);
    communicator = choice.communicator();
    sparse = new SparseAverages(this, choice);
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    Objects.requireNonNull(buffer, "buffer");
    runner.make(
        Kind.ALL_REDUCE, buffer, buffer, Objects.requireNonNull(op, "op"), RankGroup.NO_RANK);
  }

  @Override
  public void average(float[] array) {
    Objects.requireNonNull(array, "array");
    order.awaitTurn();
    arrays.average(array);
  }

  @Override
  public void average(double[] array) {
    Objects.requireNonNull(array, "array");
    order.awaitTurn();
    arrays.average(array);
  }

  @Override
  public void average(List<float[]> all) {
    for (float[] array : Objects.requireNonNull(all, "arrays")) {
      Objects.requireNonNull(array, "an array");
    }
    order.awaitTurn();
    arrays.average(all);
  }

  @Override
  public SparseRows average(SparseRows rows) {
    Objects.requireNonNull(rows, "rows");
    order.awaitTurn();
    return sparse.average(rows);
  }

  @Override
  public PendingAverage averageAsync(DeviceBuffer buffer) {
    return runner.start(Objects.requireNonNull(buffer, "buffer"));
  }

  @Override
  public void grouped(Runnable calls) {
    runner.grouped(Objects.requireNonNull(calls, "calls"));
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_GATHER, in, null, out, null, null, RankGroup.NO_RANK);
  }

  @Override
  public void allGather(DeviceBuffer in, DeviceBuffer out, long[] counts) {
    Objects.requireNonNull(counts, "counts");
    blocks(Kind.ALL_GATHER, in, null, out, counts, null, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE_SCATTER, in, null, out, null, op, RankGroup.NO_RANK);
  }

  @Override
  public void reduceScatter(DeviceBuffer in, DeviceBuffer out, long[] counts, ReduceOp op) {
    Objects.requireNonNull(counts, "counts");
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE_SCATTER, in, counts, out, null, op, RankGroup.NO_RANK);
  }

  @Override
  public void reduce(DeviceBuffer buffer, ReduceOp op, int root) {
    Objects.requireNonNull(op, "op");
    blocks(Kind.REDUCE, buffer, null, buffer, null, op, root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.GATHER, in, null, out, null, null, root);
  }

  @Override
  public void gather(DeviceBuffer in, DeviceBuffer out, long[] counts, int root) {
    blocks(Kind.GATHER, in, null, out, Objects.requireNonNull(counts, "counts"), null, root);
  }

  @Override
  public void scatter(DeviceBuffer in, DeviceBuffer out, int root) {
    blocks(Kind.SCATTER, in, null, out, null, null, root);
  }

  @Override
  public void allToAll(DeviceBuffer in, DeviceBuffer out) {
    blocks(Kind.ALL_TO_ALL, in, null, out, null, null, RankGroup.NO_RANK);
  }

  @Override
  public void allToAll(DeviceBuffer in, long[] inCounts, DeviceBuffer out, long[] outCounts) {
    Objects.requireNonNull(inCounts, "inCounts");
    Objects.requireNonNull(outCounts, "outCounts");
    blocks(Kind.ALL_TO_ALL, in, inCounts, out, outCounts, null, RankGroup.NO_RANK);
  }

  /** Makes a call with an input and an output, of which a rank may have one. */
  private void blocks(
      Kind kind,
      DeviceBuffer in,
      long[] inCounts, // or null
      DeviceBuffer out,
      long[] outCounts, // or null
      ReduceOp op,
      int root) {
    DeviceBuffer input = kind.hasInput(rank(), root) ? Objects.requireNonNull(in, "in") : null;
    DeviceBuffer output = kind.hasOutput(rank(), root) ? Objects.requireNonNull(out, "out") : null;
    runner.make(kind, input, output, op, root, inCounts, outCounts);
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    runner.make(Kind.SEND, Objects.requireNonNull(buffer, "buffer"), null, null, peer);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    runner.make(Kind.RECEIVE, null, Objects.requireNonNull(buffer, "buffer"), null, peer);
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    Objects.requireNonNull(buffer, "buffer");
    runner.make(Kind.BROADCAST, buffer, buffer, null, root);
  }

  @Override
  public void broadcast(List<? extends DeviceBuffer> buffers, int root) {
    runner.broadcast(buffers, root);
  }

  @Override
  public void register(DeviceBuffer buffer) {
    runner.register(Objects.requireNonNull(buffer, "buffer"));
  }

  @Override
  public double mean(double value) {
    order.requireOpen();
    double[] average = {value};
    choice
        .communicator()
        .compose(
            Origin.MEAN,
            () -> communicator.allReduce(DoubleBuffer.wrap(average), ReduceOp.AVERAGE));
    return average[0];
  }

  @Override
  public void barrier() {
    order.requireOpen();
    communicator.barrier();
  }

  @Override
  public Communicator communicator() {
    return communicator;
  }

  @Override
  public int rank() {
    return choice.communicator().rank();
  }

  @Override
  public int size() {
    return choice.communicator().size();
  }

  @Override
  public int localRank() {
    return choice.communicator().localRank();
  }

  @Override
  public int localSize() {
    return choice.communicator().localSize();
  }

  @Override
  public Device device() {
    return choice.device();
  }

  @Override
  public String reducer() {
    return choice.reducer().name();
  }

  @Override
  public Map<String, String> alternatives() {
    return Collections.unmodifiableMap(choice.alternatives());
  }

  @Override
  public Optional<DataType> wire() {
    return Optional.ofNullable(choice.wire());
  }

  @Override
  public String launcher() {
    return choice.group().transport().name();
  }

  @Override
  public Event observe(Consumer<Synchronization> listener) {
    Objects.requireNonNull(listener, "listener");
    order.requireOpen();
    return observer.listen(listener);
  }

  @Override
  public Observer observer() {
    return observer;
  }

  @Override
  public BackendDevice backend() {
    return choice.device();
  }

  @Override
  public GroupCommunicator ownCommunicator() {
    return choice.communicator();
  }

  @Override
  public Reducer ownReducer() {
    return choice.reducer();
  }

  @Override
  public CommunicationThread communicationThread() {
    return order.thread();
  }

  @Override
  public int nextBuckets() {
    return bucketsBuilt.incrementAndGet();
  }

  @Override
  public void awaitTurn() {
    order.awaitTurn();
  }

  @Override
  public void runHook(Runnable hook) {
    order.runHook(hook);
  }

  @Override
  public void requireNoHook() {
    order.requireNoHook();
  }

  @Override
  public void prepare(CollectiveCall call) {
    runner.prepare(call);
  }

  @Override
  public void setOrigin(Origin origin) {
    choice.group().parts().calls().setOrigin(origin);
  }

  @Override
  public void runInTurn(CollectiveCall call, Origin origin) {
    runner.runInTurn(call, origin);
  }

  void useInterceptor(CallInterceptor interceptor) {
    runner.intercept(interceptor);
    communicator = choice.communicator().intercepted(interceptor);
  }

  /** Closes buffers that calls keep. After the sync: calls take these locks before the sync's. */
  void closeKept() {
    Resources.closeAll(arrays, sparse);
  }
}

package org.gradientsync.core.sync;

import java.util.Collections;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.Device;
import org.gradientsync.Event;
import org.gradientsync.GradientSync;
import org.gradientsync.Synchronization;
import org.gradientsync.core.buckets.BucketSync;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Reducer;

/** The fields of a sync, the methods that only read them, and those for its buckets. */
abstract class ChosenSync extends GradientSync implements BucketSync {
  final Selection.Choice choice;
  final Observer observer;
  final CallOrder order;
  final CallRunner runner;
  private final AtomicInteger bucketsBuilt = new AtomicInteger();

  ChosenSync(Selection.Choice choice) {
    this.choice = choice;
    observer = new Observer(choice.device(), choice.reducer().name(), choice.group().worldRank());
    order = new CallOrder(rank(), choice.communicator()::giveUp, observer);
    runner = new CallRunner(choice, order, observer);
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
}

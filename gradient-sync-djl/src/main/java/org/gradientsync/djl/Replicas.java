package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Parameter;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.initializer.Initializer;
import ai.djl.util.PairList;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/**
 * This rank's copy of the model: its parameters begin as rank 0's, and its gradients are averaged.
 */
final class Replicas implements AutoCloseable {
  private final GradientSync sync;
  private final Trainer trainer;
  private List<Named> parameters;
  private List<Integer> trained = List.of();
  private Gradients gradients;

  /** A parameter, and its name in the model. */
  private record Named(String name, Parameter parameter) {}

  Replicas(GradientSync sync, Trainer trainer) {
    this.sync = sync;
    this.trainer = trainer;
  }

  static boolean onCuda(GradientSync sync) {
    return sync.device().kind().equals("cuda");
  }

  /** Each parameter once, also if several blocks share it. */
  private List<Named> parameters() {
    PairList<String, Parameter> all = trainer.getModel().getBlock().getParameters();
    Set<String> seen = new HashSet<>();
    return all.stream()
        .filter(pair -> seen.add(pair.getValue().getId()))
        .map(pair -> new Named(pair.getKey(), pair.getValue()))
        .toList();
  }

  /** Gives all ranks rank 0's parameters, at once or when they are initialized. */
  void broadcast() {
    for (Named named : parameters()) {
      Parameter parameter = named.parameter();
      Initializer initializer = parameter.getInitializer();
      if (parameter.isInitialized()) {
        broadcast(named.name(), parameter.getArray());
      } else if (initializer != null) {
        parameter.setInitializer(
            (manager, shape, type) -> {
              parameter.setInitializer(initializer);
              NDArray array = initializer.initialize(manager, shape, type);
              broadcast(named.name(), array);
              return array;
            });
      }
    }
  }

  private void broadcast(String name, NDArray array) {
    ByteBuffer elements = HostCopy.read(array);
    DataType type = HostCopy.typeOf(array);
    if (type == null) { // a small one: flags, counters
      sync.communicator().broadcast(elements, 0);
    } else {
      try (DeviceBuffer buffer = sync.allocate(type, array.size()).named(name)) {
        buffer.copyFrom(elements);
        sync.broadcast(buffer, 0);
        buffer.copyTo(elements);
      }
    }
    HostCopy.write(elements, array);
  }

  /**
   * Averages the gradients. Collective.
   *
   * @param factor what this rank's are multiplied with before
   */
  void average(double factor) {
    if (parameters == null) {
      parameters = parameters();
      requireSameStart();
    }
    List<Integer> now =
        IntStream.range(0, parameters.size())
            .filter(i -> parameters.get(i).parameter().requiresGradient())
            .boxed()
            .toList();
    if (!now.equals(trained)) { // at first, or parameters were frozen or thawed
      close();
      trained = now;
      gradients = now.isEmpty() ? null : Gradients.of(sync, names(), touchGradients());
    }
    if (gradients != null) {
      gradients.average(factor);
    }
  }

  private List<String> names() {
    return trained.stream().map(i -> parameters.get(i).name()).toList();
  }

  /**
   * PyTorch makes a gradient in the first backward pass that reaches its parameter. This one
   * reaches all, and adds zero.
   */
  private List<NDArray> touchGradients() {
    List<NDArray> found = new ArrayList<>();
    try (NDManager scratch = trainer.getManager().newSubManager();
        GradientCollector collector = trainer.newGradientCollector()) {
      for (int i : trained) {
        NDArray array = parameters.get(i).parameter().getArray();
        try (NDArray sum = array.sum();
            NDArray zero = sum.mul(0)) {
          zero.attach(scratch);
          collector.backward(zero);
        }
        found.add(array.getGradient());
      }
    }
    return found;
  }

  /** Compares the ranks' parameters before their first update. */
  private void requireSameStart() {
    long[] least = new long[parameters.size()];
    for (int i = 0; i < least.length; i++) {
      Parameter parameter = parameters.get(i).parameter();
      if (parameter.requiresGradient()) { // others may change in the forward pass
        CRC32C sum = new CRC32C();
        sum.update(HostCopy.read(parameter.getArray()));
        least[i] = sum.getValue();
      }
    }
    long[] most = least.clone();
    sync.communicator().allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    sync.communicator().allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    for (int i = 0; i < least.length; i++) {
      if (least[i] != most[i]) {
        throw new IllegalStateException(
            "the ranks have begun with different values of a parameter: parameter="
                + parameters.get(i).name()
                + ", rank="
                + sync.rank()
                + "; initialize the model before newTrainer, or do not change it after");
      }
    }
  }

  @Override
  public void close() {
    if (gradients != null) {
      gradients.close();
      gradients = null;
    }
    trained = List.of();
  }
}

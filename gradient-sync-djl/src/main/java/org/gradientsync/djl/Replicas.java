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
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.LayoutCheck;

/**
 * This rank's copy of the model: its parameters begin as rank 0's, and its gradients are averaged.
 */
final class Replicas implements AutoCloseable {
  private final GradientSync sync;
  private final Trainer trainer;
  private List<Named> parameters; // null before the first step
  private List<Integer> trained = List.of();
  private Gradients gradients;

  /** A parameter, and its name in the model. */
  private record Named(String name, Parameter parameter) {
    /** All that must be the same on all ranks. */
    String text() {
      if (!parameter.isInitialized()) {
        return name + ", not initialized";
      }
      NDArray array = parameter.getArray();
      return name
          + " "
          + array.getDataType().name()
          + array.getShape()
          + (parameter.requiresGradient() ? ", trained" : ", not trained");
    }
  }

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
        broadcast(named, parameter.getArray());
      } else if (initializer != null) {
        parameter.setInitializer(
            (manager, shape, type) -> {
              parameter.setInitializer(initializer);
              NDArray array = initializer.initialize(manager, shape, type);
              broadcast(named, array);
              return array;
            });
      }
    }
  }

  /**
   * Averages the running means and variances of batch normalizations. Collective.
   *
   * @return whether there are any
   */
  boolean averageStatistics() {
    boolean any = false;
    for (Named named : parameters()) {
      Parameter.Type type = named.parameter().getType();
      if ((type == Parameter.Type.RUNNING_MEAN || type == Parameter.Type.RUNNING_VAR)
          && named.parameter().isInitialized()) {
        average(named, named.parameter().getArray());
        any = true;
      }
    }
    return any;
  }

  private void average(Named named, NDArray array) {
    DataType type = HostCopy.gradientTypeOf(named.name(), array);
    ByteBuffer elements = HostCopy.read(named.name(), array);
    try (DeviceBuffer buffer = sync.allocate(type, array.size()).named(named.name())) {
      buffer.copyFrom(elements);
      sync.average(buffer);
      buffer.copyTo(elements);
    }
    HostCopy.write(elements, array);
  }

  private void broadcast(Named named, NDArray array) {
    ByteBuffer elements = HostCopy.read(named.name(), array);
    DataType type = HostCopy.typeOf(array);
    if (type == null) { // a small one, such as flags: as whole integers
      type = DataType.INT32;
      elements = padded(elements, type.sizeInBytes());
    }
    try (DeviceBuffer buffer =
        sync.allocate(type, elements.capacity() / type.sizeInBytes()).named(named.name())) {
      buffer.copyFrom(elements);
      sync.broadcast(buffer, 0);
      buffer.copyTo(elements);
    }
    HostCopy.write(elements.limit(Math.toIntExact(HostCopy.sizeInBytes(array))), array);
  }

  private static ByteBuffer padded(ByteBuffer elements, int unit) {
    int bytes = (elements.remaining() + unit - 1) / unit * unit;
    return ByteBuffer.wrap(Arrays.copyOf(elements.array(), bytes)).order(elements.order());
  }

  /** Whether this rank trains other parameters than in its last step. Not collective. */
  boolean haveChanged() {
    return parameters == null || !trainedNow().equals(trained);
  }

  private List<Integer> trainedNow() {
    return IntStream.range(0, parameters.size())
        .filter(i -> parameters.get(i).parameter().requiresGradient())
        .boxed()
        .toList();
  }

  /**
   * Averages the gradients. Collective.
   *
   * @param factor what this rank's are multiplied with before
   * @param changed whether {@link #haveChanged} was true on any rank
   */
  void average(double factor, boolean changed) {
    if (changed) {
      chooseTrained();
    }
    if (gradients != null) {
      gradients.average(factor);
    }
  }

  /** At first, and when parameters were frozen or thawed. */
  private void chooseTrained() {
    if (parameters == null) {
      parameters = parameters();
    }
    LayoutCheck.requireSame(
        sync.communicator(),
        parameters.stream().map(Named::name).toList(),
        parameters.stream().map(Named::text).toList());
    List<Integer> now = trainedNow();
    requireSameValues(now.stream().filter(i -> !trained.contains(i)).toList());
    close();
    trained = now;
    gradients = now.isEmpty() ? null : Gradients.of(sync, names(now), touchGradients());
  }

  private List<String> names(List<Integer> some) {
    return some.stream().map(i -> parameters.get(i).name()).toList();
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

  /** Compares the ranks' parameters before their first update. Others may change in between. */
  private void requireSameValues(List<Integer> some) {
    long[] least = new long[some.size()];
    for (int i = 0; i < least.length; i++) {
      Named named = parameters.get(some.get(i));
      CRC32C sum = new CRC32C();
      sum.update(HostCopy.read(named.name(), named.parameter().getArray()));
      least[i] = sum.getValue();
    }
    long[] most = least.clone();
    sync.communicator().allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    sync.communicator().allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    for (int i = 0; i < least.length; i++) {
      if (least[i] != most[i]) {
        throw new IllegalStateException(
            "the ranks have begun with different values of a parameter: parameter="
                + parameters.get(some.get(i)).name()
                + ", rank="
                + sync.rank()
                + "; initialize the model before newTrainer, or do not change it after");
      }
    }
  }

  @Override
  public void close() {
    Gradients last = gradients;
    gradients = null;
    trained = List.of();
    if (last != null) {
      last.close();
    }
  }
}

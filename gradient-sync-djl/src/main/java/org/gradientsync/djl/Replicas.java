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
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.LayoutCheck;

/**
 * This rank's copy of the model: its parameters begin as rank 0's, and its gradients are averaged.
 */
final class Replicas implements AutoCloseable {
  private final ElasticCalls calls;
  private final Trainer trainer;
  private List<Named> parameters; // null before the first step
  private List<Integer> trained = List.of(); // in the last step
  private List<Integer> trainedNow = List.of();
  private List<Integer> touched = List.of(); // whose gradients these are:
  private List<NDArray> arrays = List.of();
  private Gradients gradients; // null until the ranks' next step, and if nothing is trained

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

    /** A running mean or variance. */
    boolean isStatistic() {
      Parameter.Type type = parameter.getType();
      return parameter.isInitialized()
          && (type == Parameter.Type.RUNNING_MEAN || type == Parameter.Type.RUNNING_VAR);
    }
  }

  Replicas(ElasticCalls calls, Trainer trainer) {
    this.calls = calls;
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
   * Averages the running means and variances of batch normalizations. Collective. Returns whether
   * there are any.
   */
  boolean averageStatistics() {
    List<Named> all = parameters().stream().filter(Named::isStatistic).toList();
    List<NDArray> values = all.stream().map(named -> named.parameter().getArray()).toList();
    if (!all.isEmpty()) {
      calls.run(new double[0], () -> values, () -> all.forEach(this::average));
    }
    return !all.isEmpty();
  }

  private void average(Named named) {
    NDArray array = named.parameter().getArray();
    DataType type = HostCopy.gradientTypeOf(named.name(), array);
    ByteBuffer elements = HostCopy.read(named.name(), array);
    GradientSync sync = calls.sync();
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
    GradientSync sync = calls.sync();
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

  /** Looks whether this rank trains other parameters than in its last step. Not collective. */
  boolean haveChanged() {
    boolean isFirst = parameters == null;
    if (isFirst) {
      parameters = parameters();
    }
    trainedNow =
        IntStream.range(0, parameters.size())
            .filter(i -> parameters.get(i).parameter().requiresGradient())
            .boxed()
            .toList();
    return isFirst || !trainedNow.equals(trained);
  }

  /** The gradients of the parameters that this rank trains now. Not collective. */
  List<NDArray> gradients() {
    if (!touched.equals(trainedNow)) {
      touched = trainedNow;
      arrays = touchGradients();
    }
    return arrays;
  }

  /**
   * Averages the gradients. Collective, and may be repeated until {@link #stepIsDone}.
   *
   * @param factor what this rank's are multiplied with before
   * @param changed whether {@link #haveChanged} was true on any rank
   */
  void average(double factor, boolean changed) {
    if (changed) { // at first, and when parameters were frozen or thawed
      LayoutCheck.requireSame(
          calls.sync().communicator(),
          parameters.stream().map(Named::name).toList(),
          parameters.stream().map(Named::text).toList());
      requireSameValues(trainedNow.stream().filter(i -> !trained.contains(i)).toList());
      close();
    }
    if (gradients == null && !trainedNow.isEmpty()) {
      gradients = Gradients.of(calls.sync(), names(trainedNow), gradients());
    }
    if (gradients != null) {
      gradients.average(factor);
      if (calls.isElastic()) {
        gradients.await();
      }
    }
  }

  void stepIsDone() {
    trained = trainedNow;
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
      for (int i : touched) {
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
    Communicator ranks = calls.sync().communicator();
    ranks.allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    ranks.allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    for (int i = 0; i < least.length; i++) {
      if (least[i] != most[i]) {
        throw new IllegalStateException(
            ("the ranks have begun with different values of a parameter: parameter=%s, rank=%s;"
                    + " initialize the model before newTrainer, or do not change it after")
                .formatted(parameters.get(some.get(i)).name(), ranks.rank()));
      }
    }
  }

  /** Ends what belongs to the sync. The next step begins it again. */
  @Override
  public void close() {
    Gradients last = gradients;
    gradients = null;
    if (last != null) {
      last.close();
    }
  }
}

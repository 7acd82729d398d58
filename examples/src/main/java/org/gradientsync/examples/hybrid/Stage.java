package org.gradientsync.examples.hybrid;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;

/** A part of the model's layers, and the activations of the micro-batches in flight. */
final class Stage {
  private final List<LayerPair> pairs = new ArrayList<>();
  private final List<Weights> weights = new ArrayList<>();
  private final boolean recompute;
  private final Map<Integer, List<LayerPair.Activations>> kept = new HashMap<>();
  private final Map<Integer, double[]> inputs = new HashMap<>(); // instead, if it recomputes
  private final ActivationMemory memory = new ActivationMemory();

  Stage(Model model, int stage, int stages, TensorSum tensor, boolean recompute) {
    this.recompute = recompute;
    int end = model.firstPair(stage + 1, stages);
    for (int pair = model.firstPair(stage, stages); pair < end; pair++) {
      LayerPair own = new LayerPair(model, pair, tensor);
      pairs.add(own);
      weights.addAll(own.weights());
    }
  }

  /** Returns the weights in the order of the forward pass. */
  List<Weights> weights() {
    return weights;
  }

  /** Returns the weights that are the same on all tensor ranks. */
  List<Weights> replicated() {
    return pairs.stream().map(LayerPair::replicated).toList();
  }

  /** Returns the memory for activations. */
  ActivationMemory memory() {
    return memory;
  }

  /** Computes the outputs, and keeps what the backward pass needs. */
  double[] forward(int microBatch, double[] input) {
    if (!recompute) {
      List<LayerPair.Activations> activations = new ArrayList<>();
      double[] output = forward(input, activations);
      memory.keep(activations);
      kept.put(microBatch, activations);
      return output;
    }
    memory.keep(input);
    inputs.put(microBatch, input);
    return forward(input, null);
  }

  /** Computes the outputs, and collects the activations unless the list is null. */
  private double[] forward(double[] input, List<LayerPair.Activations> activations) {
    double[] x = input;
    for (LayerPair pair : pairs) {
      LayerPair.Activations own = pair.activations(x);
      if (activations != null) {
        activations.add(own);
      }
      x = pair.output(own);
    }
    return x;
  }

  /**
   * Adds the gradients of all weights, and forgets the micro-batch.
   *
   * @param slopes the derivatives of the loss with respect to the output
   * @param added called with the index of each of the {@link #weights} as soon as its gradient has
   *     been added
   * @return the derivatives with respect to the input
   */
  double[] backward(int microBatch, double[] slopes, IntConsumer added) {
    List<LayerPair.Activations> activations =
        recompute ? recomputed(inputs.remove(microBatch)) : kept.remove(microBatch);
    double[] gradient = slopes;
    int first = weights.size();
    for (int i = pairs.size() - 1; i >= 0; i--) {
      LayerPair pair = pairs.get(i);
      first -= pair.weights().size();
      int offset = first;
      gradient = pair.backward(activations.get(i), gradient, index -> added.accept(offset + index));
    }
    memory.release(activations);
    return gradient;
  }

  private List<LayerPair.Activations> recomputed(double[] input) {
    List<LayerPair.Activations> activations = new ArrayList<>();
    forward(input, activations);
    memory.release(input); // the activations include it
    memory.keep(activations);
    return activations;
  }
}

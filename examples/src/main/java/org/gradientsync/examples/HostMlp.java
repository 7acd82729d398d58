package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;

/**
 * Computes the layers in plain Java, in float64, with the same bits in every run. Every call has
 * finished when it returns. It copies weights out of their buffers before each use, because others
 * write there, too.
 */
class HostMlp implements MlpEngine {
  private record Batch(double[] inputs, double[] targets) {}

  private final int rows;
  private final Layer[] layers;
  private final List<Parameter> parameters = new ArrayList<>();
  private final List<DeviceBuffer> own = new ArrayList<>(); // the first weights
  private final List<Batch> batches = new ArrayList<>();
  private final double[][] values; // the weights of each layer
  private final double[][] sums; // the gradient sums of each layer
  private final double[][] outputs; // the outputs of each layer
  // the derivatives of the loss with respect to each layer's outputs
  private final double[][] slopes;
  private final double[] byInput; // one layer's weights, transposed
  private List<DeviceBuffer> weights = own;
  private Batch batch;
  private double loss;

  /** Creates an engine with weights of zero. */
  HostMlp(GradientSync sync, int[] widths, int rows) {
    this.rows = rows;
    layers = layers(widths);
    values = new double[layers.length][];
    sums = new double[layers.length][];
    outputs = new double[layers.length][];
    slopes = new double[layers.length][];
    for (int i = 0; i < layers.length; i++) {
      int count = layers[i].count();
      parameters.add(new Parameter("layer" + i, DataType.FLOAT64, count));
      own.add(sync.allocate(DataType.FLOAT64, count));
      values[i] = new double[count];
      sums[i] = new double[count];
      outputs[i] = new double[rows * layers[i].outputs()];
      slopes[i] = new double[rows * layers[i].outputs()];
    }
    byInput = new double[Arrays.stream(layers).mapToInt(Layer::count).max().orElse(0)];
  }

  /** Returns the layers between consecutive widths. */
  static Layer[] layers(int[] widths) {
    Layer[] layers = new Layer[widths.length - 1];
    Arrays.setAll(layers, i -> new Layer(widths[i], widths[i + 1]));
    return layers;
  }

  @Override
  public List<Parameter> parameters() {
    return parameters;
  }

  @Override
  public List<DeviceBuffer> weights() {
    return weights;
  }

  @Override
  public void useWeights(List<DeviceBuffer> newWeights) {
    own.forEach(DeviceBuffer::close);
    weights = newWeights;
  }

  @Override
  public void load(int number, double[] inputs, double[] targets) {
    while (batches.size() <= number) {
      batches.add(null);
    }
    batches.set(number, new Batch(inputs.clone(), targets.clone()));
  }

  @Override
  public void forward(int number) {
    batch = batches.get(number);
    double[] x = batch.inputs;
    for (int i = 0; i < layers.length; i++) {
      weights.get(i).copyTo(values[i]);
      layers[i].transpose(values[i], byInput);
      layers[i].forward(x, 0, rows, byInput, outputs[i]);
      x = outputs[i];
    }
    double squares = 0;
    for (int i = 0; i < x.length; i++) {
      double error = x[i] - batch.targets[i];
      squares += error * error;
    }
    loss = squares / x.length;
  }

  @Override
  public void backward(int layer, DeviceBuffer gradient, double scale, boolean accumulate) {
    double[] own = slopes[layer];
    if (layer == layers.length - 1) {
      for (int i = 0; i < own.length; i++) {
        own[i] = 2 * (outputs[layer][i] - batch.targets[i]) / own.length;
      }
    } // otherwise the layer above has written them
    layers[layer].mask(outputs[layer], rows, own);
    double[] sum = sums[layer];
    if (accumulate) {
      gradient.copyTo(sum);
    } else {
      Arrays.fill(sum, 0);
    }
    double[] x = layer == 0 ? batch.inputs : outputs[layer - 1];
    layers[layer].addGradient(own, x, rows, scale, sum);
    gradient.copyFrom(sum);
    if (layer > 0) {
      layers[layer].backward(own, values[layer], rows, slopes[layer - 1]);
    }
  }

  @Override
  public void update(int layer, DeviceBuffer gradient, double rate) {
    double[] sum = sums[layer];
    double[] value = values[layer];
    gradient.copyTo(sum);
    weights.get(layer).copyTo(value);
    for (int i = 0; i < value.length; i++) {
      value[i] -= rate * sum[i];
    }
    weights.get(layer).copyFrom(value);
  }

  @Override
  public void adam(AdamPart part, double rate, double correction) {
    double[] weight = Weights.get(part.weight());
    double[] gradient = Weights.get(part.gradient());
    double[] means = Weights.get(part.means());
    double[] squares = Weights.get(part.squares());
    for (int i = 0; i < weight.length; i++) {
      double g = gradient[i];
      means[i] = Adam.MEAN_DECAY * means[i] + (1 - Adam.MEAN_DECAY) * g;
      squares[i] = Adam.SQUARE_DECAY * squares[i] + (1 - Adam.SQUARE_DECAY) * g * g;
      weight[i] -= rate * means[i] / (Math.sqrt(squares[i]) * correction + Adam.EPSILON);
    }
    part.means().copyFrom(means);
    part.squares().copyFrom(squares);
    part.weight().copyFrom(weight);
  }

  @Override
  public double loss() {
    return loss;
  }

  @Override
  public void close() {
    own.forEach(DeviceBuffer::close);
  }
}

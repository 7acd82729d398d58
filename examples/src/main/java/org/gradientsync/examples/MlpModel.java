package org.gradientsync.examples;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Option;

/** The options for what {@link TrainMlp} learns, and for the widths of the layers. */
final class MlpModel {
  /** What the model learns. */
  enum Source {
    TEACHER,
    RANDOM,
    IRIS
  }

  // the limit for a matrix, and for a layer's outputs
  private static final long MOST_ELEMENTS = 1 << 28;

  @Option(
      names = "--data",
      paramLabel = "NAME",
      defaultValue = "TEACHER",
      description =
          "TEACHER: what another perceptron makes of random inputs. RANDOM: random targets, quickly"
              + " made, for timing. IRIS: 120 flowers of three kinds, 30 more for testing; 5 inputs"
              + " (the last one is 1) and 3 outputs (default: ${DEFAULT-VALUE}).")
  private Source source;

  @Option(
      names = "--layers",
      paramLabel = "N",
      description = "Layers of weights (default: 3; 2 for IRIS).")
  private Integer layers;

  @Option(
      names = "--width",
      paramLabel = "N",
      description = "Numbers between layers, and of inputs and outputs (default: 32; 16 for IRIS).")
  private Integer width;

  @Option(
      names = "--widths",
      paramLabel = "N",
      split = ",",
      description =
          "All widths from the inputs to the outputs, 5,16,3 for example, instead of --layers and"
              + " --width.")
  private int[] widths;

  @Option(
      names = "--seed",
      paramLabel = "N",
      defaultValue = "1",
      description = "Of the data and the first weights (default: ${DEFAULT-VALUE}).")
  private long seed;

  /**
   * Refuses invalid options.
   *
   * @param program the program with these options
   * @param rows the rows of a batch, at least one
   */
  void check(Program program, int rows) {
    if (layers != null) {
      program.requireAtLeast(1, "--layers", layers);
      program.requireAtMost(1000, "--layers", layers);
    }
    if (width != null) {
      program.requireAtLeast(1, "--width", width);
    }
    if (widths != null && (layers != null || width != null)) {
      throw program.badUse("--widths says it all: leave out --layers and --width");
    }
    int[] shape = widths();
    if (shape.length < 2) {
      throw program.badUse("--widths takes two widths or more: --widths " + text());
    }
    for (int i = 0; i < shape.length; i++) {
      program.requireAtLeast(1, "--widths", shape[i]);
      if ((long) shape[i] * Math.max(rows, shape[Math.max(0, i - 1)]) > MOST_ELEMENTS) {
        throw program.badUse(
            "a width times the next one, or times --rows, must be " + MOST_ELEMENTS + " or less");
      }
    }
    if (source == Source.IRIS
        && (shape[0] != IrisData.INPUTS || shape[shape.length - 1] != IrisData.KINDS)) {
      throw program.badUse(
          "--widths for IRIS begin with %s and end with %s: --widths %s"
              .formatted(IrisData.INPUTS, IrisData.KINDS, text()));
    }
  }

  /** Returns the number of inputs, and the number of outputs of each layer. */
  int[] widths() {
    if (widths != null) {
      return widths;
    }
    boolean iris = source == Source.IRIS;
    int count = layers == null ? iris ? 2 : 3 : layers;
    int[] shape = new int[count + 1];
    Arrays.fill(shape, width == null ? iris ? 16 : 32 : width);
    if (iris) {
      shape[0] = IrisData.INPUTS;
      shape[count] = IrisData.KINDS;
    }
    return shape;
  }

  /** Returns the widths as a user writes them. */
  String text() {
    return Arrays.stream(widths()).mapToObj(Integer::toString).collect(Collectors.joining(","));
  }

  Source source() {
    return source;
  }

  long seed() {
    return seed;
  }

  /** Returns what identifies the training in a checkpoint. */
  Checkpoint.Training training(String optimizer) {
    return new Checkpoint.Training(source.name(), optimizer, seed, widths());
  }

  /** Sets the initial weights of a training. */
  void setFirst(List<DeviceBuffer> weights) {
    Layer[] layers = HostMlp.layers(widths());
    for (int i = 0; i < layers.length; i++) {
      Weights.set(weights.get(i), Weights.start(seed, i, layers));
    }
  }

  /** Returns the training data, which only depends on the seed. */
  MlpData data() {
    int[] shape = widths();
    return switch (source) {
      case TEACHER -> new TeacherData(seed, shape);
      case RANDOM -> new RandomData(seed, shape[0], shape[shape.length - 1]);
      case IRIS -> new IrisData(seed);
    };
  }
}

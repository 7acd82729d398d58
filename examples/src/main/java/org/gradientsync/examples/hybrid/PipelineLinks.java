package org.gradientsync.examples.hybrid;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/** Exchanges activations and their gradients with the neighboring stages, in device memory. */
final class PipelineLinks implements AutoCloseable {
  private final GradientSync pipeline;
  private final int count;
  private final DeviceBuffer activations;
  private final DeviceBuffer gradients;

  /**
   * @param count the number of elements of each message
   */
  PipelineLinks(GradientSync pipeline, int count) {
    this.pipeline = pipeline;
    this.count = count;
    activations = pipeline.allocate(DataType.FLOAT64, count).named("activations");
    gradients = pipeline.allocate(DataType.FLOAT64, count).named("gradients of activations");
  }

  void sendActivations(double[] values) {
    send(activations, values, pipeline.rank() + 1);
  }

  double[] receiveActivations() {
    return receive(activations, pipeline.rank() - 1);
  }

  void sendGradients(double[] values) {
    send(gradients, values, pipeline.rank() - 1);
  }

  double[] receiveGradients() {
    return receive(gradients, pipeline.rank() + 1);
  }

  private void send(DeviceBuffer buffer, double[] values, int stage) {
    buffer.copyFrom(values);
    pipeline.send(buffer, stage);
  }

  private double[] receive(DeviceBuffer buffer, int stage) {
    pipeline.receive(buffer, stage);
    double[] values = new double[count];
    buffer.copyTo(values);
    return values;
  }

  @Override
  public void close() {
    gradients.close();
    activations.close();
  }
}
